"""A look at the effects of an unknown job: its task runs as far as these, and their lookups are asked. Nothing is written.

The job stays unknown meanwhile, so a person can decide at any time; what was found out decides as a person would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from holdfast.jobs.attempt import Attempt
from holdfast.jobs.calls import Call
from holdfast.jobs.control import Suspended
from holdfast.jobs.effects import Found, Manner, NotFound
from holdfast.jobs.step_log import Place
from holdfast.kernel.awaits import Block
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import PayloadError
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.kernel.spawn import over
from holdfast.store.ports import Tx
from holdfast.store.steps import Kind, Progress, Step, StepRecord


class LookedUp(Suspended):
    """The look has come as far as it may. Nothing has failed, so no `except Exception` of the task shall see it."""

    def __init__(self) -> None:
        super().__init__(None, "a look at what became of its effects")


class Answer(msgspec.Struct):
    """What the lookup of one effect said. Neither found nor not found: it cannot tell."""

    record: StepRecord
    manner: Manner
    found: bool = False
    not_found: bool = False
    result: str | None = None  # of one that was found, as JSON text
    error: str | None = None  # of a lookup that has failed

    @property
    def is_told(self) -> bool:
        return self.found or self.not_found


class Look(Attempt):
    """The run of a task that may read what is recorded of its steps, and nothing else."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.answers: dict[str, Answer] = {}
        self.why: str | None = None  # there is none
        self._asking: set[asyncio.Future[None]] = set()
        self.record_in(_ReadOnly(self._store.steps))

    async def step(self, name: str, call: Call, *, branch: str | None = None) -> Any:
        async with self._its_steps().asked(name, Kind.STEP, branch=branch) as place:
            if place.is_recorded:
                return await self._its_steps().recorded(place, call)
            raise LookedUp

    async def effect(self, name: str, call: Call, manner: Manner, *, branch: str | None = None) -> Any:
        async with self._its_steps().asked(name, manner.kind, branch=branch) as place:
            if place.is_recorded:
                return await self._its_steps().recorded(place, call)
            if place.progress is Progress.UNKNOWN and manner.look_again is not None:
                await self._ask(place, call, manner)
            raise LookedUp

    async def _ask(self, place: Place, call: Call, manner: Manner) -> None:
        assert place.record is not None
        answer = Answer(place.record, manner)
        if place.record.fingerprint != call.fingerprint():
            return  # the lookup would look for the wrong thing
        asking = asyncio.get_running_loop().create_future()
        self._asking.add(asking)
        try:
            await self._answer(answer, call)
        finally:
            asking.cancel()
            self._asking.discard(asking)
        self.answers[place.name] = answer

    async def _answer(self, answer: Answer, call: Call) -> None:
        assert answer.manner.reconcile is not None
        try:
            said = await call.beside(answer.manner.reconcile)
            if isinstance(said, Found):
                found = said.result
                text = None if found is None else encode(found, limit=RESULT_LIMIT, where="result")
                call.fitting(text)
                answer.found, answer.result = True, text
        except PayloadError as error:
            answer.error = f"what it found does not fit: {error}"
        except Exception as error:  # noqa: BLE001  whatever it is, nobody knows more than before
            answer.error = self._its_steps().told(error)
        else:
            answer.not_found = said is NotFound or isinstance(said, NotFound)

    async def all_answered(self) -> None:
        """Lookups of other coroutines of the task, which go on when the first has ended."""
        while self._asking:
            await over(*self._asking)

    # --- what a run does beside ---

    async def heartbeat(self, progress: float | None, note: str | None) -> None:
        """Nobody looks at how far a look is."""

    @asynccontextmanager
    async def commit(self, result: Any, block: Block) -> AsyncIterator[Tx]:  # noqa: ARG002
        block.is_entered = True
        raise LookedUp
        yield

    async def complete(self, tx: Any, result: Any) -> None:  # noqa: ARG002
        raise LookedUp


class _ReadOnly:
    """The steps as they are recorded."""

    def __init__(self, steps: Any) -> None:
        self.load = steps.load

    async def write(self, claim: Any, step: Step) -> bool:  # noqa: ARG002
        raise LookedUp
