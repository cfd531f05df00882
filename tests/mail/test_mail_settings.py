"""Where mail goes is said by a URL; what would be unsafe or mean nothing is refused with the way out."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.errors import UsageError
from holdfast.mail import MailSettings
from holdfast.mail.settings import Folder, Server, place, settings_of


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("smtp://localhost:1025", Server("smtp", "localhost", 1025)),
        ("smtp://mail.example.org", Server("smtp", "mail.example.org", 25)),
        ("smtps://ada:s%40fe@mail.example.org", Server("smtps", "mail.example.org", 465, "ada", "s@fe")),
        ("smtp+starttls://a:b@mail.example.org", Server("smtp+starttls", "mail.example.org", 587, "a", "b")),
        (
            "smtps://mail.example.org?ca=/etc/ca.pem",
            Server("smtps", "mail.example.org", 465, ca="/etc/ca.pem"),
        ),
        ("smtp://a:b@127.0.0.1:25", Server("smtp", "127.0.0.1", 25, "a", "b")),
        ("file:outbox", Folder("outbox")),
        ("file:///var/outbox", Folder("/var/outbox")),
        ("file:/var/outbox", Folder("/var/outbox")),
    ],
)
def test_urls_are_read(url, found):
    assert place(url) == found


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("smtp://ada:geheim@mail.example.org", "where all can read it"),
        ("http://mail.example.org", "none of"),
        ("mail.example.org", "none of"),
        ("smtp://", "no host"),
        ("smtp://mail.example.org/box", "too much"),
        ("smtps://ada@mail.example.org", "without a password"),
        ("smtps://mail.example.org:70000", "cannot be read"),
        ("smtps://mail.example.org?verify=no", "takes: ca"),
        ("smtp://mail.example.org?ca=/x", "means nothing"),
        ("file:", "no folder"),
        ("file://host/x", "no folder"),
        ("", "none of"),
        (7, "is text"),
    ],
)
def test_urls_that_are_wrong_say_why_and_show_no_password(url, why):
    with pytest.raises(UsageError, match=why) as refused:
        place(url)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(
    "wrong",
    [{"sender": "nobody"}, {"timeout": 0}, {"at_once": 0}, {"attempts": 0}, {"rate": 0}, {"queue": ""}, {"priority": 101}],
)  # fmt: skip
def test_settings_are_checked_when_they_are_made(wrong):
    with pytest.raises(UsageError):
        MailSettings(url="file:outbox", **wrong)


def test_the_environment_says_it_too():
    says = {"HOLDFAST_MAIL_URL": "file:outbox", "HOLDFAST_MAIL_FROM": "Shop <shop@example.org>"}
    assert settings_of(None, says) == MailSettings(url="file:outbox", sender="Shop <shop@example.org>")
    assert settings_of("file:other", says).url == "file:other"
    assert settings_of(None, {}) is None
    assert settings_of(None, {"HOLDFAST_MAIL_URL": ""}) is None
    with pytest.raises(UsageError):
        settings_of(7)


def test_no_password_is_printed():
    hf = Holdfast("sqlite:///never-made.db", mail="smtps://ada:geheim@mail.example.org")
    assert "geheim" not in f"{hf.mail!r} {hf.mail.settings!r} {place(hf.mail.settings.url)!r}"


async def test_places_of_the_fleet_are_counted_with_each_mail(tmp_path):
    """`in_fleet` mails at a time of all processes together."""
    settings = MailSettings(url="file:outbox", sender="shop@example.org", in_fleet=4)
    async with Holdfast(f"sqlite:///{tmp_path / 'mail.db'}", mail=settings) as hf:
        sent = await hf.mail.send(to="ada@example.org", subject="Hello", text="Hello")
        assert (await hf.jobs.get(sent.handles[0].id)).concurrency == "holdfast.mail.send"
    with pytest.raises(UsageError, match="in_fleet"):
        MailSettings(url="file:outbox", in_fleet=0)
