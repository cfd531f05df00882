"""Effects: calls whose outcome someone else keeps. The intent is recorded before the call, and nothing is guessed after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar

import msgspec

from holdfast.jobs.backoff import check_errors
from holdfast.jobs.calls import Call
from holdfast.jobs.control import Control, EffectUnknown, Snooze
from holdfast.jobs.failures import describe
from holdfast.jobs.steps import CUT_OFF, Place, Steps
from holdfast.kernel.clock import sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import HoldfastError, LeaseLost, UsageError
from holdfast.kernel.names import check_seconds
from holdfast.kernel.randomness import jittered
from holdfast.kernel.show import show
from holdfast.store.steps import Kind, Progress, StepRecord

T = TypeVar("T")
Policy = Literal["at_most_once", "at_least_once", "keyed"]
_POLICIES = (Kind.AT_MOST_ONCE, Kind.AT_LEAST_ONCE, Kind.KEYED)
SETTLE = 60.0  # seconds after its call during which an effect that is not found may still appear
KEY_TTL = 86_400.0  # seconds for which the other side remembers a key
# What says by itself that nothing was done: the call raised it on purpose, or nobody was there to hear it.
_NOT_DONE: tuple[type[Exception], ...] = (Control, ConnectionRefusedError)


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

    def __post_init__(self) -> None:
        if self.reconcile is not None and not callable(self.reconcile):
            raise UsageError(f"reconcile is a function that looks it up; not {show(self.reconcile)}.")
        check_errors("not_done", self.not_done)
        check_seconds("settle", self.settle)
        check_seconds("key_ttl", self.key_ttl)

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
        self._in_doubt = False  # a call before the last one may have been made, and nobody knows

    async def run(self, name: str, *, branch: str | None = None) -> Any:
        place = self._place = await self._steps.place(name, self._manner.kind, branch=branch)
        if place.record is not None and place.record.progress in (Progress.DONE, Progress.HANDLED):
            return self._steps.recorded(place, place.record, self._call)
        try:
            return await self._run(place, place.record)
        except BaseException:
            self._steps.left(place)
            raise

    async def _run(self, place: Place, record: StepRecord | None) -> Any:
        if record is not None and place.is_open:
            place.fingerprint = record.fingerprint
            self._steps.open[place.name] = place
            told = f"an earlier attempt (token {record.token}) began it and was lost"
            if record.fingerprint != self._call.fingerprint() and not self._may_repeat():
                raise await self._unknown(
                    f"{told}, with other arguments than now; what changes from run to run belongs into a step"
                )
            found = await self._looked_up(told)
            if found is not None:
                return await self._done(found.result)
        place.fingerprint = self._call.fingerprint()
        return await self._until_done()

    async def _until_done(self) -> Any:
        attempt = 1
        while True:
            await self._begin()
            try:
                result = await self._call.once()
            except asyncio.CancelledError:
                if self._may_repeat():
                    self._cut_off()
                raise
            except Exception as error:
                found = await self._after(error)
                if found is not None:
                    return await self._done(found.result)
                if isinstance(error, Control) or not self._call.retry.allows(attempt, error):
                    self._steps.failed(self._place, error)
                    raise
                await self._wait(attempt)
                attempt += 1
            else:
                crashpoint("effect.called")
                return await self._done(result)

    async def _wait(self, attempt: int) -> None:
        """Until it may be called again. It is known not to be done, or may be done twice: the task may go on without it."""
        try:
            await sleep(self._call.retry.delay(attempt))
        except asyncio.CancelledError:
            self._cut_off()
            raise

    def _cut_off(self) -> None:
        self._steps.failed(self._place, TimeoutError(CUT_OFF))

    async def _begin(self) -> None:
        self._in_doubt = self._place.name in self._steps.open
        try:
            await self._write(Progress.BEGUN)
            crashpoint("effect.begun")
            self._check_held()
        except (asyncio.CancelledError, LeaseLost):
            with suppress(HoldfastError):
                await self._not_done()  # no call was made
            raise

    async def _after(self, error: Exception) -> Found[Any] | None:
        """Its call has failed: what is known of the effect. None: it may be called again."""
        if isinstance(error, (*_NOT_DONE, *self._manner.not_done)):
            await self._not_done()
            return None
        return await self._looked_up(describe(error, where=False) or type(error).__name__)

    async def _not_done(self) -> None:
        """Of the last call that is known; of one before it, which could be repeated, nothing is."""
        if not self._in_doubt:
            await self._write(Progress.FAILED)

    # --- when nobody knows whether it was done ---

    async def _looked_up(self, why: str) -> Found[Any] | None:
        """What reconcile found; None: it may be called again. Raises when neither is known."""
        manner = self._manner
        answer = CannotTell if manner.reconcile is None else await self._call.beside(manner.reconcile)
        if isinstance(answer, Found):
            return answer
        if self._may_repeat():
            return None
        if answer is NotFound or isinstance(answer, NotFound):
            await self._not_found(why)
            return None
        if answer is CannotTell or isinstance(answer, CannotTell):
            raise await self._unknown(why)
        raise UsageError(f"reconcile answers Found(result), NotFound or CannotTell; not {show(answer)}.")

    def _may_repeat(self) -> bool:
        """Whether a second call does no harm."""
        match self._manner.kind:
            case Kind.AT_LEAST_ONCE:
                return True
            case Kind.KEYED:
                return self._steps.age(self._place, first=True) < self._manner.key_ttl
            case _:
                return False

    async def _not_found(self, why: str) -> None:
        """It counts only when what was on its way has arrived."""
        left = self._manner.settle - self._steps.age(self._place)
        if left > 0:
            reason = f"effect {self._place.name!r} was not found, and may still appear: {why}"
            raise self._steps.end_with(Snooze(left + jittered(0.1), reason))
        await self._write(Progress.FAILED)

    async def _unknown(self, why: str) -> Control:
        await self._write(Progress.UNKNOWN)
        return self._steps.end_with(
            EffectUnknown(f"Nobody knows whether effect {self._place.name!r} was done: {why}.")
        )

    # --- writing ---

    async def _write(self, progress: Progress) -> None:
        await self._steps.write(self._place, progress)

    async def _done(self, result: Any) -> Any:
        return await self._steps.done(self._place, self._call, result)
