"""One step of a saga: its plan is durable before its call, and its retries survive the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from holdfast.guards.faults import retry_after_of
from holdfast.guards.headers import clamped
from holdfast.jobs.calls import Call
from holdfast.jobs.control import Control, Suspended
from holdfast.jobs.effects import Effect, Found, Manner
from holdfast.jobs.step_log import Place
from holdfast.jobs.steps import CUT_OFF, Steps
from holdfast.kernel.clock import sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import TROUBLE, DeadlinePassed, Refused
from holdfast.kernel.randomness import jittered
from holdfast.sagas.endings import Failed
from holdfast.sagas.plans import Plan, read
from holdfast.store.steps import Kind, Progress

PATIENCE = 1.0  # seconds for which a run keeps its slot: what takes longer is waited for at rest
_TROUBLE = 5.0  # seconds, about, until a step is tried again whose store was in trouble
_LONGEST = 60.0  # seconds for which a guard's refusal is believed
MAY_PASS = (*TROUBLE, Refused)


def put_off(error: Exception, name: str) -> Suspended | None:
    """What says nothing about the step: a guard has refused it, or the store is in trouble. It is tried again, uncharged."""
    if isinstance(error, DeadlinePassed):
        return None
    if isinstance(error, Refused):
        after = jittered(max(0.1, clamped(retry_after_of(error), _LONGEST) or 1.0))
        return Suspended(after, f"step {name!r} was refused by a guard: {error}")
    if isinstance(error, TROUBLE):
        return Suspended(jittered(_TROUBLE), f"step {name!r} met a store in trouble: {error}")
    return None


class SagaEffect(Effect):
    """A step with an undo, a pivot or a policy: its intent, and how it is undone, are recorded before the call."""

    def __init__(
        self,
        steps: Steps,
        call: Call,
        manner: Manner,
        check_held: Callable[[], None],
        *,
        plan: Plan,
        guarded: bool,
    ) -> None:
        super().__init__(steps, call, manner, check_held)
        self._plan, self._guarded = plan, guarded

    def _take(self, place: Place) -> None:
        super()._take(place)
        place.plan = self._plan.text()
        place.doubted = place.record is not None and read(place.record.plan).doubted

    async def _done(self, result: Any, *, found: bool = False) -> Any:
        """What is undone without its result needs no person when that cannot be kept: it fails, and is undone."""
        plan = self._plan
        unkept = self._unkept if plan.args is not None and not plan.pivot else None
        return await self._steps.done(self._place, self._call, result, found=found, unkept=unkept)

    def _unkept(self, why: str) -> Control:
        """It was done, so nobody need look for it before it is undone."""
        self._place.plan, self._place.error = replace(self._plan, reconcile=None, call=None).text(), why
        error = Failed(why)
        self._failed(error)
        return error

    async def _after(self, error: Exception, before: Exception | None) -> Found[Any] | None:
        """A refusal of the step's own guard says that no call was made."""
        off = put_off(error, self._place.name)
        if off is not None and (self._guarded or self._place.kind is not Kind.AT_MOST_ONCE):
            if isinstance(error, Refused) and self._guarded:
                await self._not_done()
            raise off
        self._place.error = self._steps.told(error)
        return await super()._after(error, before)

    async def _wait(self, attempt: int) -> None:
        self._place.tries = attempt
        delay = self._call.retry.delay(attempt)
        if delay <= PATIENCE:
            await self._pause(delay)
            return
        await self._write(Progress.BEGUN if self._place.name in self._steps.log.open else Progress.FAILED)
        raise Suspended(delay, f"step {self._place.name!r} failed, and is tried again: {self._place.error}")

    async def _pause(self, delay: float) -> None:
        try:
            await sleep(delay)
        except asyncio.CancelledError:
            self._failed(TimeoutError(CUT_OFF))
            raise

    def _failed(self, error: Exception) -> None:
        """Also when it may have been done: then it is undone, or reconciled first."""
        self._place.tries += 1
        self._place.doubted = self._place.name in self._steps.log.open
        if self._place.doubted:
            self._place.plan = replace(read(self._place.plan), doubted=True).text()
        self._steps.failed(self._place, error)


async def plain_step(steps: Steps, name: str, call: Call) -> Any:
    """A step that leaves nothing behind: repeated until its result is recorded."""
    async with steps.asked(name, Kind.STEP) as place:
        if place.is_recorded:
            return await steps.recorded(place, call)
        place.fingerprint = ""
        result = await _called(steps, place, call)
        crashpoint("step.called")
        return await steps.done(place, call, result)


async def _called(steps: Steps, place: Place, call: Call) -> Any:
    while True:
        try:
            return await _counted(place, call)
        except asyncio.CancelledError:
            steps.failed(place, TimeoutError(CUT_OFF))
            raise
        except Exception as error:
            if (off := put_off(error, place.name)) is not None:
                raise off from error
            place.tries, place.error = place.tries + 1, steps.told(error)
            if isinstance(error, Control) or not call.retry.allows(place.tries, error):
                steps.failed(place, error)
                raise
        await _wait(steps, place, call.retry.delay(place.tries))


async def _counted(place: Place, call: Call) -> Any:
    try:
        return await call.once()
    finally:
        place.called(call)


async def _wait(steps: Steps, place: Place, delay: float) -> None:
    if delay <= PATIENCE:
        try:
            await sleep(delay)
        except asyncio.CancelledError:
            steps.failed(place, TimeoutError(CUT_OFF))
            raise
        return
    await steps.log.write(place, Progress.FAILED)
    raise Suspended(delay, f"step {place.name!r} failed, and is tried again: {place.error}")
