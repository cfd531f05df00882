"""One way to enqueue for all systems: those that await, and those that block and are called from threads."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from bench.place import arguments


class Caller:
    """Around the class `Producer` of a peer's module: open, one, many and close, each async or not."""

    def __init__(self, peer: Any) -> None:
        self._peer, self._producer = peer, peer.Producer()

    async def __aenter__(self) -> Self:
        await _settle(self._producer.open())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _settle(self._producer.close())

    async def one(self, job: dict[str, Any]) -> None:
        await _settle(self._producer.one(job))

    async def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        await _settle(self._producer.many(jobs))

    @property
    def has_many(self) -> bool:
        return hasattr(self._producer, "many")

    async def fill(self, number: int) -> None:
        """Queue this many jobs, as fast as this system can."""
        if self.has_many:
            for start in range(0, number, 1_000):
                await self.many([arguments(each) for each in range(start, min(start + 1_000, number))])
        elif inspect.iscoroutinefunction(self._producer.one):
            await self._fill_one_by_one(number, 20)
        else:
            await self._fill_one_by_one(number, 1)

    async def _fill_one_by_one(self, number: int, callers: int) -> None:
        numbers = iter(range(number))

        async def call() -> None:
            for each in numbers:
                await self.one(arguments(each))

        await asyncio.gather(*(call() for _ in range(callers)))

    async def together(self, callers: int, seconds: float) -> tuple[int, float]:
        """Many callers at once, each awaiting its own commit; how many calls were answered, and in what time."""
        if inspect.iscoroutinefunction(self._producer.one):
            return await self._by_tasks(callers, seconds)
        with ThreadPoolExecutor(callers) as threads:
            return await asyncio.to_thread(self._by_threads, threads, callers, seconds)

    async def _by_tasks(self, callers: int, seconds: float) -> tuple[int, float]:
        begin = time.perf_counter()

        async def call(caller: int) -> int:
            done = 0
            while time.perf_counter() - begin < seconds:
                await self._producer.one(arguments(caller * 1_000_000 + done))
                done += 1
            return done

        answered = sum(await asyncio.gather(*(call(caller) for caller in range(callers))))
        return answered, time.perf_counter() - begin

    def _by_threads(self, threads: ThreadPoolExecutor, callers: int, seconds: float) -> tuple[int, float]:
        begin = time.perf_counter()

        def call(caller: int) -> int:
            producer = self._own()
            done = 0
            while time.perf_counter() - begin < seconds:
                producer.one(arguments(caller * 1_000_000 + done))
                done += 1
            return done

        answered = sum(threads.map(call, range(callers)))
        return answered, time.perf_counter() - begin

    def _own(self) -> Any:
        """Some producers cannot be shared by threads."""
        if not getattr(self._peer, "ONE_THREAD", False):
            return self._producer
        producer = self._peer.Producer()
        producer.open()
        return producer


async def _settle(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer
