"""The bodies of answers: bounded by the deadline of their call, which is over when they are; and those kept before a retry."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self

from holdfast.guards.blocks import Ending
from holdfast.guards.http.errors import RequestTimedOut, translated
from holdfast.guards.http.library import AsyncByteStream, ReadError, Response, SyncByteStream
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import TimedOut
from holdfast.kernel.waits import in_time

KEPT = 65_536  # bytes of an answer that are read before a retry, so that its connection can be used again
PATIENCE = 1.0  # seconds for that


class Watch:
    """`with watch:` around each reading: how long the other side took, and how it ended."""

    __slots__ = ("_began", "_ending", "_took", "_until")

    def __init__(self, took: float, until: float | None) -> None:
        self._took, self._until = took, until  # seconds until the headers came; a moment
        self._began = 0.0
        self._ending: Ending | None = None

    def ends(self, ending: Ending) -> None:
        """The call that this body belongs to is over with it."""
        self._ending = ending

    def left(self) -> float | None:
        """Seconds; raises when there are none."""
        if self._until is None:
            return None
        if (left := self._until - monotonic()) <= 0:
            raise RequestTimedOut("The deadline passed while the answer's body was read.")
        return left

    def over(self, error: BaseException | None) -> None:
        if self._ending is not None:
            self._ending.over(error, took=self._took)

    def __enter__(self) -> Self:
        self._began = monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._took += monotonic() - self._began
        if error is None:
            return
        self.over(None if isinstance(error, StopIteration | StopAsyncIteration) else error)
        if type(error) is TimedOut:
            raise translated(error) from None


class AsyncBody(AsyncByteStream):
    __slots__ = ("_parts", "_stream", "_watch")

    def __init__(self, stream: AsyncByteStream, watch: Watch) -> None:
        self._stream, self._watch = stream, watch
        self._parts: AsyncIterator[bytes] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        with self._watch as watch:
            if self._parts is None:
                self._parts = aiter(self._stream)
            left = watch.left()
            part = anext(self._parts)
            return await (part if left is None else in_time(part, left))

    async def aclose(self) -> None:
        """Whoever closes it early has his answer, unless reading it has failed."""
        try:
            await self._stream.aclose()
        finally:
            self._watch.over(None)


class SyncBody(SyncByteStream):
    __slots__ = ("_parts", "_stream", "_watch")

    def __init__(self, stream: SyncByteStream, watch: Watch) -> None:
        self._stream, self._watch = stream, watch
        self._parts: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        """A thread that reads cannot be cut off: each reading is bounded by httpx, and the next one is not begun."""
        with self._watch as watch:
            if self._parts is None:
                self._parts = iter(self._stream)
            watch.left()
            return next(self._parts)

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._watch.over(None)


class Whole(AsyncByteStream, SyncByteStream):
    """A body that was read before a retry that was then refused."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        yield self._content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._content


class Torn(AsyncByteStream, SyncByteStream):
    """What is left of a body that was too long or too slow to be kept before a retry that was then refused."""

    def __iter__(self) -> Iterator[bytes]:
        raise ReadError("The body of this answer was not kept: another attempt was to follow.")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        raise ReadError("The body of this answer was not kept: another attempt was to follow.")
        yield b""


async def keep(response: Response, seconds: float) -> None:
    """Read a short body, if that takes no longer, and give the connection back. The answer stays whole, should there be no other."""
    stream: Any = response.stream
    found, whole = bytearray(), False
    response.stream = Torn()
    try:
        whole = await in_time(_read(stream, found), seconds)
    except Exception:  # noqa: BLE001  nobody wants to know why this body is lost
        whole = False
    finally:
        await stream.aclose()
    if whole:
        response.stream = Whole(bytes(found))


async def _read(stream: AsyncByteStream, found: bytearray) -> bool:
    async for part in stream:
        found += part
        if len(found) > KEPT:
            return False
    return True


def keep_sync(response: Response, seconds: float) -> None:
    """`keep`, in a thread."""
    stream: Any = response.stream
    found, whole = bytearray(), False
    response.stream = Torn()
    until = monotonic() + seconds
    try:
        for part in stream:
            found += part
            if len(found) > KEPT or monotonic() > until:
                break
        else:
            whole = True
    except Exception:  # noqa: BLE001  nobody wants to know why this body is lost
        whole = False
    finally:
        stream.close()
    if whole:
        response.stream = Whole(bytes(found))
