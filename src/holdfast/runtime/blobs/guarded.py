"""A place for blobs behind a guard: what may be asked for twice is tried again, and nobody waits for one that is down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from holdfast.blobs.errors import BlobUnavailable
from holdfast.blobs.port import DEFAULT_TYPE, BlobStore, Content, Link, Reading, Stat, Stored
from holdfast.guards import Fault, Guard, classify
from holdfast.kernel.clock import timeout

T = TypeVar("T")
_SMALL = 8 * 1024 * 1024  # bytes that are sent again when nobody knows what became of them


class GuardedBlobs:
    """`seconds` is for what moves no bytes through this process: a client may take hours to send a large file."""

    def __init__(self, inner: BlobStore, guard: Guard[Any], seconds: float) -> None:
        self.inner, self._guard, self._seconds = inner, guard, seconds

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
        """A stream can be read once only, and a large file takes its time: the guard lets them in, and does not repeat them."""
        announced: Any = {"content_type": content_type, "length": length, "sha256": sha256, "most": most}
        if isinstance(content, bytes | bytearray | memoryview) and len(content) <= _SMALL:
            stored: Stored = await self._ask(self.inner.put, name, content, **announced)
            return stored
        async with self._guard:
            return await self.inner.put(name, content, **announced)

    async def get(self, name: str, *, start: int = 0, end: int | None = None) -> Reading:
        found: Reading = await self._ask(self.inner.get, name, start=start, end=end)
        return found

    async def stat(self, name: str) -> Stat | None:
        found: Stat | None = await self._ask(self.inner.stat, name)
        return found

    async def copy(self, source: str, target: str) -> None:
        async with self._guard:  # it takes as long as the object is large
            await self.inner.copy(source, target)

    async def delete(self, names: Sequence[str]) -> None:
        if names:
            await self._ask(self.inner.delete, names)

    async def list(self, folder: str = "", *, after: str = "", limit: int = 1000) -> list[Stat]:
        found: list[Stat] = await self._ask(self.inner.list, folder, after=after, limit=limit)
        return found

    async def tidy(self, before: float) -> int:
        return await self.inner.tidy(before)

    def link_get(self, name: str, *, expires: float, download: str | None = None) -> Link:
        return self.inner.link_get(name, expires=expires, download=download)

    def link_put(self, name: str, *, expires: float, content_type: str, length: int) -> Link:
        return self.inner.link_put(name, expires=expires, content_type=content_type, length=length)

    async def check(self) -> None:
        await self.inner.check()

    async def close(self) -> None:
        await self.inner.close()

    async def _ask(self, verb: Callable[..., Awaitable[T]], *given: Any, **named: Any) -> T:
        found: T = await self._guard.call(self._in_time, partial(verb, *given, **named))
        return found

    async def _in_time(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The guard has no time limit of its own: it would end streams, too."""
        try:
            async with timeout(self._seconds):
                return await ask()
        except TimeoutError as error:
            raise BlobUnavailable(f"{self.inner!r} did not answer within {self._seconds:g} s.") from error

    def __repr__(self) -> str:
        return repr(self.inner)


def fault_of_blobs(error: Exception) -> Fault:
    """Everything that is repeated may be done twice."""
    return Fault.TRANSIENT if isinstance(error, BlobUnavailable) else classify(error)
