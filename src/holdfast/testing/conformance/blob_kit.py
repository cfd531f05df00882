"""What the suite of places for blobs needs of an adapter's author, and a client for signed links."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, ClassVar, Protocol

import msgspec

from holdfast.blobs.port import BlobStore, Link
from holdfast.kernel.world import World, inhabit
from holdfast.testing.conformance.harness import _refuse_twins


class Answer(msgspec.Struct, frozen=True):
    """What was answered to a request that a link allows, or does not."""

    status: int
    headers: dict[str, str]
    body: bytes


class BlobsHarness(Protocol):
    """One empty place for one test."""

    world: World  # the real one, where the place has a clock of its own

    async def open(self) -> BlobStore: ...
    async def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        """Over HTTP, without any rights of ours, as a browser would."""

    async def expire(self, link: Link) -> None:
        """Return when the link's time is over."""

    async def close(self) -> None: ...


class BlobsSuite:
    """A subclass gives the fixture `harness`; every async test becomes a plain one."""

    harness: ClassVar[Any]
    bench: BlobsHarness

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        _refuse_twins(cls)  # type: ignore[arg-type]  # any suite has tests by name
        for name, test in list(vars(cls).items()):
            if name.startswith("test_") and inspect.iscoroutinefunction(test):
                setattr(cls, name, _plain(test))

    async def follow(self, link: Link, body: bytes | None = None, **changed: str) -> Answer:
        """As the link says, but for headers that are `changed`, written with underscores."""
        headers = {
            **link.headers,
            **{name.replace("_", "-").title(): value for name, value in changed.items()},
        }
        return await self.bench.send(link.method, link.url, headers, body)


def _plain(
    test: Callable[[Any, BlobStore], Coroutine[Any, Any, None]],
) -> Callable[[Any, BlobsHarness], None]:
    @functools.wraps(test)
    def run(self: BlobsSuite, harness: BlobsHarness) -> None:
        __tracebackhide__ = True
        self.bench = harness
        with inhabit(harness.world), asyncio.Runner() as runner:
            runner.run(_with_place(self, harness))

    async def _with_place(self: BlobsSuite, harness: BlobsHarness) -> None:
        __tracebackhide__ = True
        try:
            await test(self, await harness.open())
        finally:
            await harness.close()

    del run.__dict__["__wrapped__"]  # or pytest would look for a fixture `place`
    return run


async def whole(place: BlobStore, name: str, start: int = 0, end: int | None = None) -> bytes:
    """What stands under the name."""
    reading = await place.get(name, start=start, end=end)
    found = b"".join([piece async for piece in reading])
    assert len(found) == reading.size
    return found


async def streamed(size: int, piece: bytes = bytes(range(256)) * 256) -> AsyncIterator[bytes]:
    """So many bytes, without having them all."""
    while size > 0:
        yield piece[:size]
        size -= len(piece)


async def names(place: BlobStore, folder: str = "", *, limit: int = 1000) -> list[str]:
    """All names, read in pages of `limit`."""
    found: list[str] = []
    while True:
        page = await place.list(folder, after=found[-1] if found else "", limit=limit)
        found += [each.name for each in page]
        if len(page) < limit:
            return found


class Broken(Exception):
    """What a source of bytes ends with in a test."""
