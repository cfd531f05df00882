"""Keys of blobs, checked by one function: what it lets through means the same in a folder, in a URL and in every S3."""

from __future__ import annotations

import re

from holdfast.blobs.errors import BlobKeyError
from holdfast.kernel.show import show

LONGEST = 500  # of a key with its tenant and the area before it, S3 takes 1,024
_LONGEST_PART = 200
_PART = re.compile(r"[A-Za-z0-9_=@+,-](?:[A-Za-z0-9._=@+,-]*[A-Za-z0-9_=@+,-])?")
NOBODY = "-"  # stands for the tenant where there is none; no tenant may be called so
_HOW = (
    "A key has parts between single slashes, such as posts/7/cover.png: letters and digits of ASCII and _ = @ + , - and, not at the ends "
    "of a part, dots. Keep the name that a person gave in a row of yours, and take an id for the key."
)


def check_key(value: object, kind: str = "key") -> str:
    """The key as plain text. Nothing in it is decoded, folded or resolved: what could mean another key somewhere is refused."""
    if not isinstance(value, str):
        raise BlobKeyError(f"The {kind} of a blob is text, not {show(value)} ({type(value).__name__}).")
    key = str.__str__(value)
    if not 0 < len(key) <= LONGEST:
        raise BlobKeyError(f"The {kind} {show(key)} has {len(key)} characters: it has from 1 to {LONGEST}.")
    for part in key.split("/"):
        if len(part) > _LONGEST_PART or not _PART.fullmatch(part):
            raise BlobKeyError(f"The {kind} {show(key)} has the part {show(part)}. {_HOW}")
    return key


def check_prefix(value: object) -> str:
    """The beginning of keys, which may end anywhere: in a part, or with a slash."""
    if value == "":
        return ""
    if not isinstance(value, str):
        raise BlobKeyError(f"The prefix is text, not {show(value)} ({type(value).__name__}).")
    check_key(value + "x" if value.endswith(("/", ".")) else value, "prefix")
    return str.__str__(value)


def check_tenant(value: object) -> str:
    """The tenant as one part of a path; `None` is nobody."""
    if value is None:
        return NOBODY
    if not isinstance(value, str) or value == NOBODY or "/" in value:
        raise BlobKeyError(
            f"The tenant {show(value)} is no part of a key: text of letters, digits and _ = @ + , - and dots inside; not {NOBODY!r} alone. "
            "Take its id."
        )
    return check_key(value, "tenant")
