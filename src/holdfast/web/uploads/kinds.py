"""What a file is, by its bytes: never by its name, and never by what a client says about it."""

from __future__ import annotations

import re

HEAD = 8 * 1024  # bytes that are looked at in the beginning
TAIL = 66 * 1024  # and in the end: there the directory of a ZIP stands, before a comment of at most 64 KB
UNKNOWN, TEXT, MARKUP = "application/octet-stream", "text/plain", "text/html"
_ACTIVE = re.compile(rb"<\s*(script|html|svg|body|iframe|!doctype)\b|<\?php", re.IGNORECASE)
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_ZIP_END = re.compile(rb"PK\x05\x06\0\0\0\0", re.DOTALL)  # of one volume, as all are
# Texts of these kinds look like any other: the client may say which.
REFINED = frozenset({"text/csv", "text/markdown", "text/calendar", "text/vcard", "application/json"})
# Found by two or three bytes, with which a text may begin as well.
_WEAK = frozenset({"image/bmp", "application/x-msdownload", "audio/mpeg", "application/x-compress"})


def kind_of(head: bytes, told: str | None = None) -> str:
    """The media type of what begins so. What looks like markup is `text/html`, whatever else it is: browsers would run it."""
    import filetype  # noqa: PLC0415  an extra

    found = filetype.guess_mime(head) if head else None
    if found is not None and not (found in _WEAK and _text(head) is not None):
        return str(found)
    text = _text(head)
    if text is None:
        return UNKNOWN
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        return MARKUP
    return told if told in REFINED else TEXT


def hides(kind: str, head: bytes, tail: bytes) -> str | None:
    """What else the file is, beside its kind; None: nothing that is known."""
    if kind.partition("/")[0] in {"image", "audio", "video"} and _ACTIVE.search(head[:HEAD]):
        return "it has markup or a program in its beginning"
    if _ZIP_END.search(tail) and not _may_be_zip(kind):
        return "it is a ZIP, too"
    return None


def _may_be_zip(kind: str) -> bool:
    """Office documents and books are ZIPs by themselves."""
    return (
        kind in {"application/zip", "application/epub+zip", UNKNOWN}
        or "officedocument" in kind
        or "opendocument" in kind
    )


def _text(head: bytes) -> str | None:
    """None: it is none. A letter may be cut at the end of what is looked at."""
    for cut in range(4):
        try:
            text = head[: len(head) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return None if _CONTROLS.search(text) else text
    return None
