"""The simulated mail server takes mails, shows them, and lies when it is told to."""

from __future__ import annotations

import smtplib
from email.message import EmailMessage

import httpx
import pytest

from simulators.common.server import Running
from simulators.smtp.app import Simulator


@pytest.fixture
def smtp():
    with Simulator(seed=7) as simulator:
        yield simulator


def send(smtp, to="ada@example.org", number=1):
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "us@example.org", to, "Grüße <b>"
    mail["Message-ID"] = f"<{number}@example.org>"
    mail.set_content("Hello")
    with smtplib.SMTP("127.0.0.1", smtp.port, timeout=5) as line:
        line.send_message(mail)


def test_a_mail_is_taken_and_shown(smtp):
    send(smtp)
    [mail] = smtp.ledger.find("mail")
    assert (mail["to"], mail["message_id"], mail["text"].strip()) == (
        "ada@example.org",
        "<1@example.org>",
        "Hello",
    )
    with Running(smtp.app) as page:
        assert "Grüße &lt;b&gt;" in httpx.get(page.url).text
        assert httpx.get(f"{page.url}/_sim/ledger?kind=mail").json()[0]["subject"] == "Grüße <b>"


@pytest.mark.parametrize(
    ("endpoint", "kind"), [("rcpt", "451"), ("rcpt", "550"), ("data", "451"), ("data", "550")]
)
def test_a_refused_mail_is_not_taken(smtp, endpoint, kind):
    smtp.faults.put(endpoint, kind, times=1, who="ada@example.org")
    with pytest.raises(smtplib.SMTPException) as told:
        send(smtp)
    assert kind in str(told.value)
    assert smtp.ledger.find("mail") == []
    send(smtp, "bob@example.org")
    assert len(smtp.ledger.find("mail")) == 1


def test_a_lost_answer_comes_after_the_mail(smtp):
    smtp.faults.put("data", "lost", times=1)
    with pytest.raises(smtplib.SMTPServerDisconnected):
        send(smtp)
    assert len(smtp.ledger.find("mail")) == 1


def test_a_server_that_hangs_up_has_taken_nothing(smtp):
    smtp.faults.put("data", "refused", times=1)
    with pytest.raises(smtplib.SMTPServerDisconnected):
        send(smtp)
    assert smtp.ledger.find("mail") == []
