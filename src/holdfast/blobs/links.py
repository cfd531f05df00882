"""Signed links to the folder's objects: bound to method, name, time, type and length. The key that signs lies in the folder itself."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from holdfast.blobs.errors import LinkRefused
from holdfast.blobs.keys import check_key
from holdfast.blobs.port import Link
from holdfast.kernel.clock import now
from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.names import check_seconds
from holdfast.kernel.randomness import random_bytes
from holdfast.kernel.show import show

LONGEST = 7 * 86_400.0  # seconds, as in S3
_FILE = ".signing-key"  # no key begins with a dot
_SIZE = 32
_FIELDS = ("x", "t", "l", "d")


class Granted(msgspec.Struct, frozen=True):
    """What a link allows."""

    method: str
    name: str
    expires: int
    content_type: str | None = None
    length: int | None = None
    download: str | None = None


class Signer:
    def __init__(self, folder: Path, public: str) -> None:
        self._folder, self._public = folder, public.rstrip("/")
        self._key: bytes | None = None

    def link(
        self,
        method: str,
        name: str,
        *,
        expires: float,
        content_type: str | None = None,
        length: int | None = None,
        download: str | None = None,
    ) -> Link:
        until = int(now() + check_seconds("expires", expires, 1.0, LONGEST))
        download = None if download is None else check_download(download)
        granted = Granted(method, name, until, content_type, length, download)
        given = {"x": until, "t": content_type, "l": length, "d": download, "s": self._signature(granted)}
        query = urlencode({key: value for key, value in given.items() if value is not None})
        headers = (
            {} if content_type is None else {"Content-Type": content_type, "Content-Length": str(length)}
        )
        return Link(method, f"{self._public}/{name}?{query}", headers, float(until))

    def granted(self, method: str, name: str, query: Mapping[str, str]) -> Granted:
        """What this request may do, as its link says; LinkRefused when no link of ours says so."""
        wrong = LinkRefused("This link was not made here, or was changed.")
        if set(query) - {*_FIELDS, "s"} or not query.get("x", "").isdecimal() or not query["x"].isascii():
            raise wrong
        length = query.get("l")
        if length is not None and not (length.isascii() and length.isdecimal()):
            raise wrong
        told = Granted(
            method, check_key(name), int(query["x"]), query.get("t"), None if length is None else int(length), query.get("d")
        )  # fmt: skip
        if not hmac.compare_digest(self._signature(told).encode(), query.get("s", "").encode()):
            raise wrong
        if told.expires <= now():
            raise LinkRefused("This link has expired. Ask for a new one.")
        return told

    def _signature(self, granted: Granted) -> str:
        text = msgspec.json.encode((1, msgspec.structs.astuple(granted)))
        mark = hmac.new(self._its_key(), text, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(mark).decode().rstrip("=")

    def _its_key(self) -> bytes:
        if self._key is None:
            self._key = _key_in(self._folder)
        return self._key


def _key_in(folder: Path) -> bytes:
    """The one that all processes on this folder share; made by the first, whole or not at all."""
    path = folder / _FILE
    with suppress(FileNotFoundError):
        return _read(path)
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{new_id()}.key"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(random_bytes(_SIZE))
        file.flush()
        os.fsync(file.fileno())
    try:
        with suppress(FileExistsError):  # another was first
            os.link(beside, path)
    finally:
        beside.unlink()
    return _read(path)


def _read(path: Path) -> bytes:
    key = path.read_bytes()
    if len(key) != _SIZE:
        raise UsageError(
            f"{path} has {len(key)} bytes, and a key has {_SIZE}. Remove it: a new one is made, and old links end."
        )
    return key


def check_download(value: object) -> str:
    """The name of a file, as it stands in Content-Disposition: nothing that begins another header or another name."""
    text = value if isinstance(value, str) else ""
    if not 0 < len(text) <= 150 or not text.isprintable() or any(each in text for each in '"\\/;%'):
        raise UsageError(
            f"download is the name of a file without slashes, quotes, semicolons and percent signs, at most 150 characters; not {show(value)}."
        )
    return text
