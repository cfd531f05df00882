"""What a webhook is sent can be told from what strangers send."""

from __future__ import annotations

import base64

import msgspec
import pytest
from alert_kit import SECRET

from holdfast.errors import UsageError
from holdfast.observe import Alert, AlertSettings, NotOurAlert, verify_alert
from holdfast.observe.alerts.settings import settings_of
from holdfast.observe.alerts.signing import signed

ALERT = Alert(id="a", kind="dead", cause="mail", state="opened", number=3, opened_at=1.0, at=1.0)
BODY = msgspec.json.encode(ALERT)


def headers(manual_clock, secret=SECRET, body=BODY, age=0, delivery="d1"):
    at = int(manual_clock.now()) - age
    return {
        "Webhook-Id": delivery, "webhook-timestamp": str(at), "WEBHOOK-SIGNATURE": signed(secret, delivery, at, body),
    }  # fmt: skip


def test_it_is_signed_as_the_standard_has_it():
    """The example of the specification of Standard Webhooks."""
    body = b'{"test": 2432232314}'
    found = signed("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_what_is_signed_is_taken(manual_clock):
    assert verify_alert(BODY, headers(manual_clock), SECRET) == ALERT
    assert verify_alert(BODY, headers(manual_clock, age=299), SECRET) == ALERT


def test_while_the_secret_is_changed_both_count(manual_clock):
    new = "whsec_" + base64.b64encode(b"n" * 32).decode()
    for sender, receiver in ((f"{new} {SECRET}", SECRET), (f"{new} {SECRET}", new), (new, f"{SECRET} {new}")):
        assert verify_alert(BODY, headers(manual_clock, secret=sender), receiver) == ALERT


def test_a_secret_may_be_any_text(manual_clock):
    text = "correct-horse-battery-staple"
    assert verify_alert(BODY, headers(manual_clock, secret=text), text) == ALERT


@pytest.mark.parametrize("age", [301, -301])
def test_what_is_old_is_refused(manual_clock, age):
    with pytest.raises(NotOurAlert, match="300 s ago"):
        verify_alert(BODY, headers(manual_clock, age=age), SECRET)
    assert verify_alert(BODY, headers(manual_clock, age=age), SECRET, tolerance=400) == ALERT


@pytest.mark.parametrize("change", [
    {"Webhook-Id": "d2"}, {"webhook-timestamp": "1"}, {"webhook-timestamp": "9" * 400}, {"webhook-timestamp": "now"},
    {"WEBHOOK-SIGNATURE": "v1,AAAA"}, {"WEBHOOK-SIGNATURE": ""}, {"WEBHOOK-SIGNATURE": "v1,\u00fc"},
])  # fmt: skip
def test_what_was_changed_is_refused(manual_clock, change):
    with pytest.raises(NotOurAlert):
        verify_alert(BODY, headers(manual_clock) | change, SECRET)


def test_another_body_another_secret_and_no_headers_are_refused(manual_clock):
    with pytest.raises(NotOurAlert, match="not made with this secret"):
        verify_alert(BODY + b" ", headers(manual_clock), SECRET)
    with pytest.raises(NotOurAlert, match="not made with this secret"):
        verify_alert(BODY, headers(manual_clock, secret="another-secret-of-some-length"), SECRET)
    with pytest.raises(NotOurAlert, match="lacks webhook-id"):
        verify_alert(BODY, {}, SECRET)
    with pytest.raises(NotOurAlert, match="is no alert"):
        verify_alert(b"[]", headers(manual_clock, body=b"[]"), SECRET)
    large = b" " * 70_000
    with pytest.raises(NotOurAlert, match="70,000 bytes"):
        verify_alert(large, headers(manual_clock, body=large), SECRET)


@pytest.mark.parametrize(("options", "said"), [
    ({"webhook": "https://ops.example.org/"}, "needs a secret"),
    ({"webhook": "ftp://ops.example.org/", "secret": SECRET}, "no URL that we can post to"),
    ({"webhook": "https://a:b@ops.example.org/", "secret": SECRET}, "without a user and a password"),
    ({"webhook": "https://ops.example.org/\r\nX: y", "secret": SECRET}, "no URL that we can post to"),
    ({"webhook": "https://ops.example.org:0/", "secret": SECRET}, "no URL that we can post to"),
    ({"webhook": "https://ops.example.org:x/", "secret": SECRET}, "no URL that we can post to"),
    ({"secret": "short"}, "too short"),
    ({"secret": "whsec_ü"}, "not base64"),
    ({"mail": "ada@example.org"}, "list of addresses"),
    ({"mail": ["nobody"]}, "nobody"),
    ({"again": 0}, "again must be from"),
    ({"every": 1e9}, "every must be from"),
])  # fmt: skip
def test_settings_that_cannot_work_are_refused(options, said):
    with pytest.raises(UsageError, match=said):
        AlertSettings(**options)


def test_settings_come_from_the_environment_where_code_says_nothing():
    variables = {
        "HOLDFAST_ALERTS_WEBHOOK": "https://ops.example.org/x", "HOLDFAST_ALERTS_SECRET": SECRET,
        "HOLDFAST_ALERTS_MAIL": "ada@example.org, eve@example.org",
    }  # fmt: skip
    found = settings_of(AlertSettings(lag=5), variables)
    assert (found.webhook, found.secret, found.mail, found.lag) == (
        "https://ops.example.org/x", SECRET, ("ada@example.org", "eve@example.org"), 5,
    )  # fmt: skip
    said = AlertSettings(webhook="https://other.example.org/", secret="s" * 20, mail=["bob@example.org"])
    assert settings_of(said, variables) == said
    assert settings_of(None, {}) == AlertSettings()


def test_what_is_secret_is_not_shown():
    shown = repr(AlertSettings(webhook="https://ops.example.org/secret/path", secret=SECRET))
    assert shown == "AlertSettings(webhook='https://ops.example.org', mail=0 addresses)"
