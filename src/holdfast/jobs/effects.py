"""Effects: calls whose outcome someone else keeps. The intent is recorded before the call, and nothing is guessed after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar

import msgspec

from holdfast.guards.backoff import Backoff, check_errors
from holdfast.jobs.calls import Call, was_not_made
from holdfast.jobs.control import Control, Snooze
from holdfast.jobs.step_log import Place
from holdfast.jobs.steps import CUT_OFF, Steps
from holdfast.kernel.clock import sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import DeadlinePassed, HoldfastError, LeaseLost, Refused, StepLeft, UsageError
from holdfast.kernel.names import check_seconds
from holdfast.kernel.randomness import jittered
from holdfast.kernel.show import show
from holdfast.kernel.threads import Stopped
from holdfast.store.steps import Kind, Progress

T = TypeVar("T")
Policy = Literal["at_most_once", "at_least_once", "keyed"]
_POLICIES = (Kind.AT_MOST_ONCE, Kind.AT_LEAST_ONCE, Kind.KEYED)
_BY_STRICTNESS = (Kind.AT_MOST_ONCE, Kind.KEYED, Kind.AT_LEAST_ONCE)  # what may be repeated least comes first
SETTLE = 60.0  # seconds after its call during which an effect that is not found may still appear
KEY_TTL = 86_400.0  # seconds for which the other side remembers a key
# What ends a run before its call is made.
_NOT_CALLED = (asyncio.CancelledError, Stopped, LeaseLost, UsageError, Control, StepLeft)


class Found(msgspec.Struct, Generic[T], frozen=True):
    """`reconcile` says: it was done, and this is its result."""

    result: T


class NotFound:
    """`reconcile` says: it was not done. The class itself is the answer."""


class CannotTell:
    """`reconcile` says: I do not know. The class itself is the answer."""


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How an effect is done, and what happens when nobody knows whether it was."""

    kind: Kind
    reconcile: Callable[..., Any] | None = None
    not_done: tuple[type[Exception], ...] = ()
    settle: float = SETTLE
    key_ttl: float = KEY_TTL
    look_again: Backoff | None = None

    def __post_init__(self) -> None:
        if self.reconcile is not None and not callable(self.reconcile):
            raise UsageError(f"reconcile is a function that looks it up; not {show(self.reconcile)}.")
        check_errors("not_done", self.not_done)
        check_seconds("settle", self.settle)
        check_seconds("key_ttl", self.key_ttl)
        if self.look_again is not None:
            self._check_look_again()

    def _check_look_again(self) -> None:
        if not isinstance(self.look_again, Backoff):
            raise UsageError(
                f"look_again is a Backoff, such as Backoff(attempts=12, first=60, ceiling=3600); not {show(self.look_again)}."
            )
        if self.reconcile is None:
            raise UsageError(
                "look_again asks reconcile once more: give the effect a reconcile function, too."
            )
        if self.kind is Kind.AT_LEAST_ONCE:
            raise UsageError(
                "look_again is for an effect of which nobody may know. One at_least_once is called again instead."
            )

    @property
    def first_look(self) -> float | None:
        """Seconds until it is looked up again, after the run has looked in vain."""
        return None if self.look_again is None or self.look_again.attempts < 2 else self.look_again.delay(1)

    @classmethod
    def of(cls, *, policy: Policy, **options: Any) -> Manner:
        """As a task says it."""
        if policy not in _POLICIES:
            raise UsageError(f"policy is one of {', '.join(_POLICIES)}; not {show(policy)}.")
        return cls(kind=Kind(policy), **options)


class Effect:
    """One effect of a run: from its intent to what is known of its end."""

    def __init__(self, steps: Steps, call: Call, manner: Manner, check_held: Callable[[], None]) -> None:
        self._steps, self._call, self._manner, self._check_held = steps, call, manner, check_held
        self._place: Place
        self._called = False  # by this run
        self._in_doubt = False  # a call before the last one may have been made, and nobody knows

    async def run(self, name: str, *, branch: str | None = None) -> Any:
        async with self._steps.asked(name, self._manner.kind, branch=branch) as place:
            self._take(place)
            if place.is_recorded:
                return await self._steps.recorded(place, self._call)
            if place.is_open and (found := await self._after_another(place)) is not None:
                return await self._done(found.result, found=True)
            place.fingerprint = self._call.fingerprint()
            return await self._until_done()

    def _take(self, place: Place) -> None:
        self._place = place
        place.look = self._manner.first_look

    async def _after_another(self, place: Place) -> Found[Any] | None:
        """An earlier attempt has begun it."""
        record = place.record
        assert record is not None
        place.fingerprint = record.fingerprint
        # What is written of that call says so too: the attempt after this one may know no more of it than this.
        place.kind = min(record.kind, self._manner.kind, key=_BY_STRICTNESS.index)
        self._steps.log.open[place.name] = place
        told = f"an earlier attempt (token {record.token}) began it and was lost"
        if record.fingerprint != self._call.fingerprint() and not self._may_repeat():
            changed = "with other arguments than now; what changes from run to run belongs into a step"
            place.look = None  # it would look for the wrong thing
            raise await self._unknown(f"{told}, {changed}")
        return await self._looked_up(told)

    async def _until_done(self) -> Any:
        attempt, failure = self._place.tries + 1, None
        while True:
            if (found := await self._before_again()) is not None:
                return await self._done(found.result, found=True)
            await self._pass(failure)
            try:
                result = await self._counted_call()
            except asyncio.CancelledError:
                if self._place.kind is Kind.AT_LEAST_ONCE:
                    self._failed(TimeoutError(CUT_OFF))
                raise
            except Exception as error:
                found = await self._after(error, failure)
                failure = error
                if found is not None:
                    return await self._done(found.result, found=True)
                if isinstance(error, Control) or not self._call.retry.allows(attempt, error):
                    self._failed(error)
                    raise
                await self._wait(attempt)
                attempt += 1
            else:
                crashpoint("effect.called")
                return await self._done(result)

    def _turned_away(self, refusal: Exception, failure: Exception | None) -> BaseException:
        """By its guard: the job is held. After a failure of this run that is what the task hears of, for a call was made."""
        if failure is None and not isinstance(refusal, DeadlinePassed):
            return self._steps.held(self._place, self._call, refusal)
        told = failure or refusal
        self._failed(told)
        return told

    async def _pass(self, failure: Exception | None) -> None:
        """Its guard, and then its intent."""
        try:
            await self._call.prepare(self._begin, once=self._manner.kind is Kind.AT_MOST_ONCE)
        except Refused as refusal:
            raise self._turned_away(refusal, failure) from refusal

    async def _counted_call(self) -> Any:
        try:
            return await self._call.once()
        finally:
            self._place.called(self._call)

    async def _wait(self, attempt: int) -> None:
        """Until it may be called again."""
        try:
            await sleep(self._call.retry.delay(attempt))
        except asyncio.CancelledError:
            self._failed(TimeoutError(CUT_OFF))
            raise

    def _failed(self, error: Exception) -> None:
        """The task may go on without it, unless it may have been done: then another way would be a second one."""
        self._place.doubted = self._place.name in self._steps.log.open
        if self._place.kind is Kind.AT_LEAST_ONCE or not self._place.doubted:
            self._steps.failed(self._place, error)

    async def _before_again(self) -> Found[Any] | None:
        """Time has passed since its last call: the other side may have forgotten its key."""
        if self._place.name in self._steps.log.open and not self._may_repeat():
            return await self._looked_up("its key may be forgotten by now")
        return None

    async def _begin(self) -> None:
        self._in_doubt = self._place.name in self._steps.log.open
        if not self._in_doubt:
            self._place.kind = self._manner.kind
        self._called = True
        try:
            await self._steps.log.write(self._place, Progress.BEGUN, intent=True)
            crashpoint("effect.begun")
            self._check_held()
            self._steps.check_goes_on()
        except _NOT_CALLED:
            with suppress(HoldfastError):
                await self._not_done()  # no call was made
            raise

    async def _after(self, error: Exception, before: Exception | None) -> Found[Any] | None:
        """Its call has failed: what is known of the effect. None: it may be called again. `before`: the failure of the last one.

        That its time was over is our own word, and says nothing, although it may be of a type that the other side's have.
        """
        if error is self._call.turned_away:  # at the last moment
            await self._not_done()
            raise self._turned_away(error, before) from error
        if error is not self._call.cut_off and isinstance(error, (Control, *self._manner.not_done)):
            await self._not_done()
            return None
        found = await self._looked_up(self._steps.told(error))
        if found is None and was_not_made(error) and self._place.name in self._steps.log.open:
            await self._write(Progress.BEGUN)  # of a call before it
        return found

    async def _not_done(self) -> None:
        """Of the last call that is known; of one before it, which could be repeated, nothing is."""
        await self._write(Progress.BEGUN if self._in_doubt else Progress.FAILED)

    # --- when nobody knows whether it was done ---

    async def _looked_up(self, why: str) -> Found[Any] | None:
        """What reconcile found; None: it may be called again. Raises when neither is known."""
        manner = self._manner
        try:
            answer = CannotTell if manner.reconcile is None else await self._call.beside(manner.reconcile)
        except Exception as error:
            if manner.look_again is None or isinstance(error, _NOT_CALLED) or self._may_repeat():
                raise
            answer, why = CannotTell, f"{why}, and its lookup failed: {self._steps.told(error)}"
        if isinstance(answer, Found):
            return answer
        was_sought = answer is NotFound or isinstance(answer, NotFound)
        if not was_sought and answer is not CannotTell and not isinstance(answer, CannotTell):
            raise UsageError(f"reconcile answers Found(result), NotFound or CannotTell; not {show(answer)}.")
        if self._may_repeat():
            return None
        if not was_sought:
            raise await self._unknown(why)
        await self._not_found(why)
        return None

    def _may_repeat(self) -> bool:
        """Whether a second call does no harm: as the task says now, and as it said when it was begun."""
        if self._place.kind is Kind.KEYED:
            return self._steps.log.age(self._place) < self._manner.key_ttl
        return self._place.kind is Kind.AT_LEAST_ONCE

    async def _not_found(self, why: str) -> None:
        """It counts only when what was on its way has arrived: `settle` seconds after it was first looked for in vain."""
        left = self._manner.settle
        if self._place.progress is Progress.SOUGHT and not self._called:
            left -= self._steps.log.sought_for(self._place)
        else:
            await self._write(Progress.SOUGHT)
        if left > 0:
            reason = f"effect {self._place.name!r} was not found, and may still appear: {why}"
            raise self._steps.end_with(Snooze(left + jittered(0.1), reason))
        await self._write(Progress.FAILED)

    async def _unknown(self, why: str) -> Control:
        told = f"Nobody knows whether effect {self._place.name!r} was done: {why}."
        return await self._steps.unknown(self._place, told, look=self._place.look)

    # --- writing ---

    async def _write(self, progress: Progress) -> None:
        await self._steps.log.write(self._place, progress)

    async def _done(self, result: Any, *, found: bool = False) -> Any:
        return await self._steps.done(self._place, self._call, result, found=found)
