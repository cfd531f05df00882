"""No address, subject or header can smuggle a line into a mail; what cannot be sent is refused when it is said."""

from __future__ import annotations

from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.utils import getaddresses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.mail import Letter
from holdfast.mail.addresses import Address, mask, read

FROM, TO = Address("shop@example.org", "Shop"), Address("ada@example.org")
BREAKS = ["\r\nBcc: eve@example.org", "\nX: y", "\r", "\0", "\x85", "\u2028", "\x1b[2J"]


def letter(**changes):
    return Letter(**{"message_id": "<1@x>", "at": 0.0, "sender": FROM, "to": (TO,), "subject": "Hi", "text": "Hi", **changes})  # fmt: skip


@pytest.mark.parametrize("wrong", BREAKS)
def test_no_control_character_gets_into_a_header(wrong):
    with pytest.raises(UsageError, match="begins another header"):
        letter(subject=f"Hi{wrong}")
    with pytest.raises(UsageError, match="begins another header"):
        letter(headers={"X-Campaign": f"a{wrong}"})
    with pytest.raises(UsageError):
        letter(headers={f"X-A{wrong}": "a"})
    with pytest.raises(UsageError):
        read("to", f"ada@example.org{wrong}")
    with pytest.raises(UsageError):
        read("to", f"Ada{wrong} <ada@example.org>")


SMUGGLED = [
    "=?utf-8?q?a=0ABcc:_eve@example.org?=",
    "=?utf-8?q?a=0D=0A=0D=0Aanother body?=",
    "=?utf-8?b?YQ0KQmNjOiBldmVAZXhhbXBsZS5vcmc=?=",
    "x =?iso-8859-1?q?=0A?= y",
]


@pytest.mark.parametrize("smuggled", SMUGGLED)
def test_no_encoded_word_is_decoded_into_another_line(smuggled):
    """Python's own classes for mails do that: what a customer writes into a form would begin a header."""
    found = letter(
        subject=smuggled, headers={"X-Campaign": smuggled}, sender=read("sender", f"{smuggled} <shop@example.org>"),
        to=(read("to", f'"{smuggled}" <ada@example.org>'),), reply_to=read("reply_to", f"{smuggled} <help@example.org>"),
    )  # fmt: skip
    message = message_from_bytes(found.render())
    assert message.keys()[:9] == ["From", "To", "Reply-To", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Campaign", "Content-Type"]  # fmt: skip
    assert read_back(message["Subject"]) == read_back(message["X-Campaign"]) == smuggled
    assert message.get_payload() == "Hi\r\n"


_SEEN = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), max_size=250).map(str.strip)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(_SEEN, _SEEN.filter(lambda text: len(text) <= 200 and '"' not in text and "\\" not in text))
def test_headers_arrive_as_they_were_written(subject, name):
    found = letter(subject=subject, to=(Address("ada@example.org", name), Address("bob@example.org", name)))
    content = found.render()
    assert max(map(len, content.split(b"\r\n"))) < 999, "SMTP takes no longer lines"
    message = message_from_bytes(content)
    assert read_back(message["Subject"]) == subject
    told = [(read_back(each), spec) for each, spec in getaddresses([message["To"].replace("\r\n", "")])]
    assert told == [(name, "ada@example.org"), (name, "bob@example.org")]


def read_back(header):
    return str(make_header(decode_header(header.replace("\r\n", ""))))


def test_a_long_word_stays_whole():
    """Such as the link of List-Unsubscribe, which is machines' to read."""
    link = f"<https://shop.example.org/{'x' * 300}>"
    assert f"List-Unsubscribe: {link}\r\n".encode() in letter(headers={"List-Unsubscribe": link}).render()


@pytest.mark.parametrize("wrong", ["\ud800", "a\0b", 7, b"bytes", "x" * 300_000])
def test_what_no_mail_can_say_is_refused(wrong):
    for kind in ("text", "html"):
        with pytest.raises(UsageError, match=kind):
            letter(**{kind: wrong})
    if not isinstance(wrong, str):
        with pytest.raises(UsageError, match="text"):
            letter(subject=wrong)


@given(st.text(max_size=60), st.text(max_size=30))
def test_whatever_is_taken_is_one_header(subject, name):
    try:
        found = letter(subject=subject, sender=read("sender", f'"{name}" <shop@example.org>'))
    except UsageError:
        return
    message = message_from_bytes(found.render(), policy=policy.default)
    assert sorted(message.keys()) == sorted(
        ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type", "Content-Transfer-Encoding", "MIME-Version"]
    )  # fmt: skip
    assert message["From"].addresses[0].addr_spec == "shop@example.org"


@pytest.mark.parametrize(
    "name", ["Bcc", "to", "Content-Type", "message-id", "Received", "Resent-To", "X A", "X:", "", "1x"]
)
def test_headers_of_ours_and_odd_ones_are_refused(name):
    with pytest.raises(UsageError):
        letter(headers={name: "a"})


@pytest.mark.parametrize(
    ("text", "spec", "name"),
    [
        ("ada@example.org", "ada@example.org", ""),
        (" ada@Example.ORG ", "ada@example.org", ""),
        ("Ada Lovelace <ada@example.org>", "ada@example.org", "Ada Lovelace"),
        ('"Lovelace, Ada" <ada@example.org>', "ada@example.org", "Lovelace, Ada"),
        ("a+b.c@mail.example.org", "a+b.c@mail.example.org", ""),
        ("Zoë <zoe@bücher.example>", "zoe@xn--bcher-kva.example", "Zoë"),
        ("root@localhost", "root@localhost", ""),
    ],
)
def test_addresses_are_read(text, spec, name):
    assert read("to", text) == Address(spec, name)


@pytest.mark.parametrize(
    "text",
    ["", "ada", "@example.org", "ada@", "a b@example.org", "ada@@example.org", "ada@exa mple.org", ".a@x.org", "a..b@x.org",
     "ada@-x.org", "<ada@example.org", "a@x.org, b@x.org", "ada@[127.0.0.1]", "zoë@example.org", "x" * 65 + "@x.org",
     "ada@straße.example", "ada@\uff45xample.org", "ada@example。org", "ada@\u212a.example", "ada@a\u200db.example", "ada@①.example",
     "ada@" + "x" * 64 + ".org", "a@x.org> SIZE=1", "ada@example.org>\r\nRCPT TO:<eve@example.org", 17, None],
)  # fmt: skip
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError):
        read("to", text)


def test_two_renderings_are_the_same_bytes():
    both = letter(
        text="Hi", html="<p>Hi</p>", subject="Grüezi", sender=read("sender", "Zoë <zoe@example.org>")
    )
    assert both.render() == both.render()
    assert both.render().isascii()


def test_a_mail_says_something():
    with pytest.raises(UsageError, match="text="):
        letter(text=None)


def test_an_address_is_masked():
    assert mask("ada@example.org") == "a…@example.org"
