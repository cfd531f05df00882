"""The port: what a place for blobs can do. A folder and S3 do the same, and one suite tests both."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec

Content: TypeAlias = bytes | bytearray | memoryview | Path | Iterable[bytes] | AsyncIterable[bytes]
DEFAULT_TYPE = "application/octet-stream"


class Stored(msgspec.Struct, frozen=True):
    """What was written: how many bytes, and their SHA-256 in hex."""

    size: int
    sha256: str


class Stat(msgspec.Struct, frozen=True):
    """What is known of an object without reading it. A listing of S3 does not tell types."""

    name: str
    size: int
    modified: float  # seconds since 1970
    content_type: str | None


class Link(msgspec.Struct, frozen=True):
    """A signed link: send exactly this method and these headers. Whoever has it needs nothing else, so it is a secret until it expires."""

    method: str
    url: str
    headers: dict[str, str]
    expires: float  # seconds since 1970

    def __repr__(self) -> str:
        return f"Link({self.method} {self.url.partition('?')[0]}, expires={self.expires:.0f})"


class Reading(Protocol):
    """An object that is being read: its bytes, in chunks. Close it when you stop before its end."""

    @property
    def stat(self) -> Stat: ...
    @property
    def size(self) -> int:
        """Of what is read: the range, not the whole."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


class BlobStore(Protocol):
    """Objects by their names. An object is there whole or not at all, and when `put` returns it is on the disk."""

    async def put(
        self,
        name: str,
        content: Content,
        *,
        content_type: str = DEFAULT_TYPE,
        length: int | None = None,
        sha256: str | None = None,
        most: int | None = None,
    ) -> Stored:
        """Write it, streamed. Other bytes than announced by `length` and `sha256`, or more than `most`: BlobMismatch, and nothing is kept."""

    async def get(self, name: str, *, start: int = 0, end: int | None = None) -> Reading:
        """Read it, or the bytes from `start` to before `end`. BlobMissing at once; what lies behind its end is empty."""

    async def stat(self, name: str) -> Stat | None: ...
    async def copy(self, source: str, target: str) -> None:
        """Whole, with its type, without a detour over this process."""

    async def delete(self, names: Sequence[str]) -> None:
        """What is not there is no error."""

    async def list(self, folder: str = "", *, after: str = "", limit: int = 1000) -> list[Stat]:
        """The objects below the folder, by name, after the name `after`. Fewer than `limit`: there are no more."""

    async def tidy(self, before: float) -> int:
        """Remove what writers left that were killed before this time; how many."""

    def link_get(self, name: str, *, expires: float, download: str | None = None) -> Link:
        """Read it without us, for so many seconds. `download` is the name of the file that browsers save."""

    def link_put(self, name: str, *, expires: float, content_type: str, length: int) -> Link:
        """Write it without us: so many bytes of this type."""

    async def check(self) -> None:
        """Whether it can be used; raises what is wrong."""

    async def close(self) -> None: ...
