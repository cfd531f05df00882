"""Group commit: whatever arrives while one flush is under way goes into the next one, together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from holdfast.kernel.errors import CommitUnknown, HoldfastError, NotOpen, StoreError
from holdfast.kernel.spawn import over, spawn

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Waiting: TypeAlias = tuple[Sequence[Item], asyncio.Future[list[Answer]]]  # a caller's items, and its answer
_FEW = 16  # callers that are not worth two batches


class Batcher(Generic[Item, Answer]):
    """Flushes the items of many callers together; each caller waits only for the batch with its own.

    A lone caller flushes its items itself, at once. When a batch is refused, it is halved until the one caller that is
    at fault fails alone; when the store is known to be at fault (NotOpen, or a kind of StoreError), all callers of the
    batch fail with it. A StoreError of no kind may be about one item, so that batch is halved too.
    """

    def __init__(
        self, flush: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]], *, limit: int, name: str
    ) -> None:
        self._flush, self._limit, self._name = flush, limit, name
        self._is_free = True
        self._waiting: deque[Waiting[Item, Answer]] = deque()

    async def add(self, items: Sequence[Item]) -> list[Answer]:
        if self._is_free and not self._waiting:
            return await self._flush_alone(items)
        future: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, future))
        return await future

    async def rest(self) -> None:
        """Wait until those who wait now have set out."""
        await over(*(future for _, future in self._waiting))

    async def _flush_alone(self, items: Sequence[Item]) -> list[Answer]:
        self._is_free = False
        try:
            return [*await self._flush(items)]
        finally:
            self._go_on(1)

    def _go_on(self, answered: int) -> None:
        """The next batch sets out in a task of its own, since no caller owns it."""
        batch = self._next(answered)
        self._is_free = not batch
        if batch:
            task = spawn(self._answers([items for items, _ in batch]), name=f"batch:{self._name}")
            # Not at the end of the task itself: one that is cancelled before its first step has no end.
            task.add_done_callback(partial(self._flushed, batch))

    def _flushed(
        self, batch: list[Waiting[Item, Answer]], task: asyncio.Task[list[list[Answer] | Exception]]
    ) -> None:
        """The next batch sets out before the callers of this one are told: they are busy while the store is, not after it."""
        self._go_on(len(batch))
        if task.cancelled() or (fault := task.exception()) is not None:
            told = "it was cancelled" if task.cancelled() else repr(fault)
            lost = CommitUnknown(f"The batch was given up ({told}): it happened or it did not.")
            answers: list[list[Answer] | Exception] = [lost] * len(batch)
        else:
            answers = task.result()
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():  # its caller has gone
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _next(self, answered: int) -> list[Waiting[Item, Answer]]:
        """Of many, half: all at once would leave the store idle while they make their next calls, and them while it writes."""
        batch: list[Waiting[Item, Answer]] = []
        most, total = max(_FEW, (len(self._waiting) + answered + 1) // 2), 0
        while self._waiting and len(batch) < most:
            items, future = self._waiting[0]
            if batch and total + len(items) > self._limit:
                break
            self._waiting.popleft()
            if not future.done():  # its caller has gone
                batch.append((items, future))
                total += len(items)
        return batch

    async def _answers(self, groups: Sequence[Sequence[Item]]) -> list[list[Answer] | Exception]:
        try:
            answers = iter(await self._flush([item for group in groups for item in group]))
        except Exception as error:  # noqa: BLE001  it is the answer to whoever asked
            if len(groups) == 1 or not is_one_items_fault(error):
                return [error] * len(groups)
        else:
            return [[next(answers) for _ in group] for group in groups]
        middle = len(groups) // 2
        return await self._answers(groups[:middle]) + await self._answers(groups[middle:])


def is_one_items_fault(error: BaseException) -> bool:
    """Whether the rest may succeed without the one item that it is about."""
    if isinstance(error, HoldfastError):
        return not isinstance(error, StoreError | NotOpen) or type(error) is StoreError
    return isinstance(error, Exception)
