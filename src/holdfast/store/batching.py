"""Group commit: whatever arrives while one flush is under way goes into the next one, together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from holdfast.kernel.errors import HoldfastError, StoreError
from holdfast.kernel.spawn import spawn

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_FEW = 16  # items that are not worth two batches


class Batcher(Generic[Item, Answer]):
    """Flushes items in batches, at most `lanes` at a time; each caller waits only for the batch with its own item.

    A lone caller flushes its item itself, at once. When a batch is refused, it is halved until the one item that is
    at fault fails alone; when the store is at fault (a StoreError), all items of the batch fail with it.
    """

    def __init__(
        self,
        flush: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        *,
        limit: int,
        name: str,
        size: Callable[[Item], int] = lambda _: 1,
        lanes: int = 1,
    ) -> None:
        self._flush, self._limit, self._name, self._size = flush, limit, name, size
        self._free = lanes
        self._lanes = lanes
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._at_rest = asyncio.Event()

    async def add(self, item: Item) -> Answer:
        if self._free and not self._waiting:
            return await self._flush_alone(item)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        return await future

    async def rest(self) -> None:
        """Wait until whatever was added has been answered."""
        while self._free < self._lanes:
            self._at_rest.clear()
            await self._at_rest.wait()

    async def _flush_alone(self, item: Item) -> Answer:
        self._free -= 1
        try:
            [answer] = await self._flush([item])
        finally:
            self._go_on(1)
        return answer

    def _go_on(self, answered: int) -> None:
        """A lane has become free: the next batch takes it, in a task of its own, since no caller owns the batch."""
        batch = self._next(answered)
        if batch:
            spawn(self._flush_next(batch), name=f"batch:{self._name}")
        else:
            self._free += 1
            self._at_rest.set()

    async def _flush_next(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        """The next batch sets out before the callers of this one are told: they are busy while the store is, not after it."""
        try:
            answers = await self._answers([item for item, _ in batch])
        except BaseException as error:
            _answer(batch, [StoreError(f"The batch was given up: {error!r}")] * len(batch))
            raise
        finally:
            self._go_on(len(batch))
        _answer(batch, answers)

    def _next(self, answered: int) -> list[tuple[Item, asyncio.Future[Answer]]]:
        """Of many, half: all at once would leave the store idle while they make their next calls, and them while it writes."""
        batch: list[tuple[Item, asyncio.Future[Answer]]] = []
        most, total = max(_FEW, (len(self._waiting) + answered + 1) // 2), 0
        while self._waiting and len(batch) < most:
            item, future = self._waiting[0]
            if batch and total + self._size(item) > self._limit:
                break
            self._waiting.popleft()
            if not future.done():  # its caller has gone
                batch.append((item, future))
                total += self._size(item)
        return batch

    async def _answers(self, items: Sequence[Item]) -> list[Answer | Exception]:
        try:
            return [*await self._flush(items)]
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            if len(items) == 1 or not is_one_items_fault(error):
                return [error] * len(items)
        middle = len(items) // 2
        return await self._answers(items[:middle]) + await self._answers(items[middle:])


def is_one_items_fault(error: BaseException) -> bool:
    """Whether the rest may succeed without the one item that it is about."""
    if isinstance(error, HoldfastError):
        return not isinstance(error, StoreError) or type(error) is StoreError
    return isinstance(error, Exception)


def _answer(
    batch: Sequence[tuple[Item, asyncio.Future[Answer]]], answers: Sequence[Answer | Exception]
) -> None:
    for (_, future), answer in zip(batch, answers, strict=True):
        if future.done():  # its caller has gone
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
