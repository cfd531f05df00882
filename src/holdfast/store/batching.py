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
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()

    async def add(self, item: Item) -> Answer:
        if self._free and not self._waiting:
            return await self._flush_alone(item)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        return await future

    async def _flush_alone(self, item: Item) -> Answer:
        self._free -= 1
        try:
            [answer] = await self._flush([item])
        finally:
            self._go_on()
        return answer

    def _go_on(self) -> None:
        """A lane has become free: the next batch takes it, in a task of its own, since no caller owns the batch."""
        batch = self._next()
        if batch:
            spawn(self._flush_next(batch), name=f"batch:{self._name}")
        else:
            self._free += 1

    async def _flush_next(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            await self._flush_parts(batch)
        finally:
            self._go_on()

    def _next(self) -> list[tuple[Item, asyncio.Future[Answer]]]:
        batch: list[tuple[Item, asyncio.Future[Answer]]] = []
        total = 0
        while self._waiting:
            item, future = self._waiting[0]
            if batch and total + self._size(item) > self._limit:
                break
            self._waiting.popleft()
            if not future.done():  # its caller has gone
                batch.append((item, future))
                total += self._size(item)
        return batch

    async def _flush_parts(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._flush([item for item, _ in batch])
        except BaseException as error:
            if len(batch) == 1 or not is_one_items_fault(error):
                _fail(batch, error)
                if not isinstance(error, Exception):
                    raise
                return
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
            return
        middle = len(batch) // 2
        await self._flush_parts(batch[:middle])
        await self._flush_parts(batch[middle:])


def is_one_items_fault(error: BaseException) -> bool:
    """Whether the rest may succeed without the one item that it is about."""
    if isinstance(error, HoldfastError):
        return not isinstance(error, StoreError) or type(error) is StoreError
    return isinstance(error, Exception)


def _fail(batch: list[tuple[Item, asyncio.Future[Answer]]], error: BaseException) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(
                error if isinstance(error, Exception) else StoreError(f"The batch was given up: {error!r}")
            )
