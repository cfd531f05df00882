"""What probes ask. Each question has its time, and ends with it: a database that hangs shall not collect them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from holdfast.kernel.clock import monotonic, timeout
from holdfast.store.ports import Store
from holdfast.web.probes.report import Check

Question = Callable[[], Awaitable[object]]


class Questions:
    """`needed` are those without which the process cannot work; the others are told."""

    def __init__(
        self,
        store: Callable[[], Store],
        needed: Mapping[str, Question],
        told: Mapping[str, Question],
        patience: float,
    ) -> None:
        self._store, self._patience = store, patience
        self._needed, self._told = needed, told
        self._fits = False  # its tables have been found to be there: they do not go away

    async def ready(self) -> tuple[Check, ...]:
        asked = [self._asked("tables", self._tables), self._asked("database", self._database)]
        asked += [self._asked(name, question) for name, question in self._needed.items()]
        asked += [self._asked(name, question, needed=False) for name, question in self._told.items()]
        return tuple(await asyncio.gather(*asked))

    async def startup(self) -> tuple[Check, ...]:
        return (await self._asked("tables", self._tables),)

    async def _asked(self, name: str, question: Question, *, needed: bool = True) -> Check:
        began, error = monotonic(), None
        try:
            async with timeout(self._patience):
                answer = await question()
            error = None if answer is None or answer is True else str(answer)
        except TimeoutError:
            error = f"no answer within {self._patience:g} s"
        except Exception as failure:  # noqa: BLE001  it is the answer
            error = str(failure) or type(failure).__name__
        return Check(
            name=name, well=error is None, error=error, needed=needed, seconds=round(monotonic() - began, 3)
        )

    async def _tables(self) -> str | None:
        """Also of a store that is not open yet."""
        if self._fits:
            return None
        if missing := await self._store().pending():
            return f"the migrations {', '.join(missing)} are missing: run holdfast migrate"
        self._fits = True
        return None

    async def _database(self) -> None:
        await self._store().now()
