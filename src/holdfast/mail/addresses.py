"""Addresses: read, checked, and masked where people look who need not know them.

Only what can stand in a header and in an SMTP command by itself is taken, so that nothing can be smuggled into either.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show

MOST = 50  # recipients of one mail
_LONGEST, _LONGEST_LOCAL, _LONGEST_NAME = 254, 64, 200
_NAMED = re.compile(r'(?:"(?P<quoted>[^"\\]*)"|(?P<name>[^<>"\\]*?))\s*<(?P<address>[^<>]*)>')
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
# Two standards read these in two ways, or pass over them: such a domain is written in its ASCII form, xn--….
_AMBIGUOUS = re.compile("[\u00ad\u00df\u03c2\u1806\u180b-\u180d\u200b-\u200d\u2060\u3002\ufe00-\ufe0f\ufeff]")
# Whatever would begin another line or end this one, in any program that reads it; and what has no UTF-8.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Address(msgspec.Struct, frozen=True):
    spec: str  # local@domain, in ASCII
    name: str = ""

    @property
    def text(self) -> str:
        """As a program says it."""
        return f'"{self.name}" <{self.spec}>' if self.name else self.spec


def read(kind: str, value: object) -> Address:
    """`ada@example.org`, `Ada <ada@example.org>` or `"Lovelace, Ada" <ada@example.org>`; `kind` says which header it is for."""
    if not isinstance(value, str):
        raise UsageError(f"{kind} is an address as text, not {show(value)} ({type(value).__name__}).")
    check_line(kind, value, 2 * _LONGEST)
    found = _NAMED.fullmatch(value.strip())
    name, spec = ("", value.strip()) if found is None else _parts(found)
    local, at, domain = spec.rpartition("@")
    if not at or not _LOCAL.fullmatch(local) or len(local) > _LONGEST_LOCAL:
        raise _wrong(kind, value)
    spec = f"{local}@{_ascii(kind, value, domain)}"
    if len(spec) > _LONGEST or len(name) > _LONGEST_NAME:
        raise _wrong(kind, value)
    return Address(spec, name)


def read_all(kind: str, value: object) -> tuple[Address, ...]:
    """One address or several."""
    if isinstance(value, str):
        return (read(kind, value),)
    if not isinstance(value, Iterable):
        raise UsageError(f"{kind} is an address or a list of addresses, not {show(value)}.")
    return tuple(read(kind, each) for each in value)


def check_line(kind: str, value: object, longest: int) -> None:
    """Refuse what could begin another header."""
    if not isinstance(value, str):
        raise UsageError(f"{kind} is text, not {show(value)} ({type(value).__name__}).")
    if (found := CONTROLS.search(value)) is not None:
        raise UsageError(
            f"{kind} has the character U+{ord(found[0]):04X} at position {found.start()}: a line break in a header begins another "
            "header, so no control character is taken. Was it typed by somebody? Then refuse it where they can see it."
        )
    if len(value) > longest:
        raise UsageError(f"{kind} has {len(value):,} characters; the limit is {longest:,}. Shorten it.")


def mask(spec: str) -> str:
    """`a…@example.org`: enough to tell two apart, for listings and logs."""
    local, _, domain = spec.rpartition("@")
    return f"{local[:1]}…@{domain}"


def _parts(found: re.Match[str]) -> tuple[str, str]:
    name = found["quoted"] if found["quoted"] is not None else found["name"].strip()
    return name, found["address"].strip()


def _ascii(kind: str, value: str, domain: str) -> str:
    """A letter that only stands for others (a wide one, ß) is refused: the mail would go to a domain that nobody has written."""
    if unicodedata.normalize("NFKC", domain) != domain or _AMBIGUOUS.search(domain.lower()):
        raise _wrong(kind, value)
    try:
        found = domain if domain.isascii() else domain.encode("idna").decode("ascii")
    except UnicodeError:
        raise _wrong(kind, value) from None
    if not all(_LABEL.fullmatch(label) for label in found.split(".")):
        raise _wrong(kind, value)
    return found.lower()


def _wrong(kind: str, value: str) -> UsageError:
    return UsageError(
        f"{kind} is no mail address that can be sent to: {show(value)}. Such as ada@example.org, or Ada <ada@example.org>; letters before "
        "the @ are ASCII, and a domain whose letters stand for others, such as ß, is written as xn--…."
    )
