"""Content on its way in: counted, hashed, and compared with what was announced, whatever it comes from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.blobs.errors import BlobMismatch, BlobTooLarge
from holdfast.blobs.port import Content, Stored
from holdfast.kernel.errors import UsageError
from holdfast.kernel.loops import call_in_thread
from holdfast.kernel.names import check_int
from holdfast.kernel.show import show

CHUNK = 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TYPE = re.compile(
    r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,80}(; charset=[A-Za-z0-9_-]{1,40})?"
)


class Counted:
    """Iterate it once; at its end everything is as announced, or BlobMismatch is raised instead of the end."""

    def __init__(self, content: Content, *, length: int | None, sha256: str | None, most: int | None) -> None:
        if sha256 is not None and not _SHA256.fullmatch(str(sha256)):
            raise UsageError(f"sha256 is 64 hexadecimal digits in lower case, not {show(sha256)}.")
        self._content, self._length, self._sha256, self._most = content, length, sha256, most
        self._hash, self._size = hashlib.sha256(), 0
        self.failure: BaseException | None = None  # what it ended with: libraries in between may change it

    @property
    def stored(self) -> Stored:
        return Stored(self._size, self._hash.hexdigest())

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """In chunks of about a megabyte, however it comes."""
        buffer = bytearray()
        try:
            async for piece in pieces(self._content):
                self._count(piece)
                buffer += piece
                if len(buffer) >= CHUNK:
                    yield bytes(buffer)
                    buffer.clear()
            self._compare()
        except BaseException as error:
            self.failure = error
            raise
        if buffer:
            yield bytes(buffer)

    def _count(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._most is not None and self._size > self._most:
            raise BlobTooLarge(f"At most {self._most:,} bytes are taken here, and more came.")
        if self._length is not None and self._size > self._length:
            raise BlobMismatch(f"{self._length:,} bytes were announced, and more came.")
        self._hash.update(piece)

    def _compare(self) -> None:
        if self._length is not None and self._size != self._length:
            raise BlobMismatch(f"{self._length:,} bytes were announced, and {self._size:,} came.")
        if self._sha256 is not None and self._hash.hexdigest() != self._sha256:
            raise BlobMismatch(
                f"The SHA-256 {self._sha256} was announced, and that of what came is {self._hash.hexdigest()}."
            )


async def pieces(content: Any) -> AsyncIterator[bytes]:
    if isinstance(content, bytes | bytearray | memoryview):
        view = memoryview(content).cast("B")
        for start in range(0, len(view), CHUNK):
            yield bytes(view[start : start + CHUNK])
    elif isinstance(content, Path):
        async for piece in _of_file(content):
            yield piece
    elif isinstance(content, AsyncIterable):
        async for piece in content:
            yield piece
    elif isinstance(content, str) or not isinstance(content, Iterable):
        raise UsageError(
            f"The content of a blob is bytes, a Path, or an iterable of bytes, async or not; not {show(content)} ({type(content).__name__})."
        )
    else:
        for piece in content:
            yield piece


async def _of_file(path: Path) -> AsyncIterator[bytes]:
    file: Any = await call_in_thread(partial(path.open, "rb"))
    try:
        while piece := await call_in_thread(partial(file.read, CHUNK)):
            yield piece
    finally:
        file.close()


def check_type(value: object) -> str:
    """A media type as it stands in a header."""
    if not isinstance(value, str) or not _TYPE.fullmatch(value):
        raise UsageError(
            f"A content type is such as image/png or text/plain; charset=utf-8, not {show(value)}."
        )
    return value


def check_length(value: int | None) -> int | None:
    return None if value is None else check_int("length", value, 0, 2**63)
