"""The life of anything that runs: started in order, stopped in reverse, and it says when it is not well."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

from holdfast.kernel.clock import sleep
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import end, spawn
from holdfast.kernel.telemetry import note


class Service(Protocol):
    async def start(self) -> None: ...
    async def stop(self) -> None:
        """End, and leave nothing running. Stopping what never started, or twice, is no error."""

    def trouble(self) -> str | None:
        """What is wrong, for a person; None when it is well."""


class Services:
    """Several services as one. When one cannot start, those before it are stopped again."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = list(services)
        self._started: list[Service] = []

    async def start(self) -> None:
        for service in self._services:
            try:
                await service.start()
            except BaseException:
                await self.stop()
                raise
            self._started.append(service)

    async def stop(self) -> None:
        while self._started:
            service = self._started.pop()
            try:
                await service.stop()
            except Exception as error:  # noqa: BLE001  the others must still be stopped
                note("service.stop_failed", service=type(service).__name__, error=repr(error))

    def trouble(self) -> str | None:
        return "; ".join(found for service in self._started if (found := service.trouble())) or None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


class Looping(ABC):
    """A service that is one coroutine, run until it is stopped."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._task: asyncio.Task[None] | None = None
        self._trouble: str | None = None

    async def start(self) -> None:
        self._task = spawn(self._run(), name=self._name)

    async def stop(self) -> None:
        if (task := self._task) is not None:
            self._task = None
            await end(task)

    def trouble(self) -> str | None:
        return self._trouble

    @abstractmethod
    async def _run(self) -> None: ...


class Periodic(Looping):
    """Do one thing again and again, about `every` seconds, and go on after it has failed."""

    def __init__(self, name: str, action: Callable[[], Awaitable[object]], *, every: float) -> None:
        super().__init__(name)
        self._action, self._every = action, every

    async def _run(self) -> None:
        while True:
            try:
                await self._action()
                self._trouble = None
            except Exception as error:  # noqa: BLE001  a failed turn is told, and the next one is tried
                self._trouble = f"{self._name}: {error}"
                note("periodic.failed", name=self._name, error=repr(error))
            await sleep(jittered(self._every))
