"""A mail as it is stored with its job, and as it goes over the wire: the same bytes at every attempt."""

from __future__ import annotations

import hashlib
import re
from email import policy
from email.message import EmailMessage
from email.utils import formatdate

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.payload import PAYLOAD_LIMIT
from holdfast.kernel.show import show
from holdfast.mail.addresses import Address, check_line, read
from holdfast.mail.headers import addresses, line

_LONGEST_SUBJECT, _LONGEST_HEADER, _MOST_HEADERS = 900, 900, 20
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,70}")
_OURS = re.compile(
    r"(?i)(from|to|cc|bcc|sender|reply-to|subject|date|message-id|mime-version|auto-submitted|received|return-path|dkim-signature"
    r"|content-.*|resent-.*|arc-.*)"
)
_POLICY = policy.SMTP.clone(cte_type="7bit")  # so that no server has to say that it takes more


class Letter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all recipients of one mail read. Whom it goes to stands beside it: `bcc` is in no header."""

    message_id: str
    at: float  # seconds since 1970, for its Date
    sender: Address
    to: tuple[Address, ...] = ()
    cc: tuple[Address, ...] = ()
    reply_to: Address | None = None
    subject: str
    text: str | None = None
    html: str | None = None
    headers: dict[str, str] = {}

    def __post_init__(self) -> None:
        check_line("subject", self.subject, _LONGEST_SUBJECT)
        if self.text is None and self.html is None:
            raise UsageError("A mail has text=, or html=, or both.")
        for kind, body in (("text", self.text), ("html", self.html)):
            if body is not None:
                _check_body(kind, body)
        if len(self.headers) > _MOST_HEADERS:
            raise UsageError(f"A mail has at most {_MOST_HEADERS} headers of its own.")
        for name, value in self.headers.items():
            _check_header(name, value)

    def render(self) -> bytes:
        """As it goes over the wire. Nothing in it is drawn anew."""
        found = [
            addresses("From", [self.sender]),
            addresses("To", self.to) if self.to else "",
            addresses("Cc", self.cc) if self.cc else "",
            addresses("Reply-To", [self.reply_to]) if self.reply_to is not None else "",
            line("Subject", self.subject),
            line("Date", formatdate(self.at)),
            line("Message-ID", self.message_id),
            line("Auto-Submitted", "auto-generated"),  # so that nobody's holiday notice answers
            *(line(name, value) for name, value in self.headers.items()),
        ]
        return "".join(found).encode("ascii") + self._body()

    def _body(self) -> bytes:
        """And the headers that tell how to read it."""
        message = EmailMessage(policy=_POLICY)
        if self.text is None or self.html is None:
            kind, body = ("plain", self.text) if self.html is None else ("html", self.html)
            message.set_content(body, subtype=kind)
            return message.as_bytes()
        message.set_content(self.text)
        message.add_alternative(self.html, subtype="html")
        message.set_boundary(f"={hashlib.sha256(self.message_id.encode()).hexdigest()[:32]}=")
        return message.as_bytes()


def message_id(key: str, sender: Address) -> str:
    """For a mail of which `key` is the name that it has for ever."""
    return f"<{key}@{sender.spec.rpartition('@')[2]}>"


def digest(letter: Letter) -> str:
    """Of what somebody reads: two mails of one job that differ have names of their own."""
    body = (letter.to, letter.cc, letter.subject, letter.text, letter.html)
    return hashlib.sha256(msgspec.json.encode(body)).hexdigest()[:32]


def sender_of(value: object) -> Address:
    return read("sender", value)


def _check_body(kind: str, value: object) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{kind} of a mail is text, not {show(value)} ({type(value).__name__}).")
    if len(value) > PAYLOAD_LIMIT:
        raise UsageError(
            f"{kind} has {len(value):,} characters; the limit is {PAYLOAD_LIMIT:,}. Send a link instead."
        )
    if (found := _UNREADABLE.search(value)) is not None:
        raise UsageError(
            f"{kind} has the character U+{ord(found[0]):04X} at position {found.start()}, which no mail can have. Take it out."
        )


def _check_header(name: object, value: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{show(name)} is no name of a header: letters, digits and dashes, such as X-Campaign."
        )
    if _OURS.fullmatch(name):
        raise UsageError(
            f"The header {name} is made by hf.mail.send itself: use its options, or leave it out."
        )
    check_line(f"The header {name}", value, _LONGEST_HEADER)
