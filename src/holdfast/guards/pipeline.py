"""The pipeline around one call, always in this order: fallback, deadline, retry, breaker, limiter, bulkhead, attempt."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from holdfast.guards.admission import Admission, Gates
from holdfast.guards.blocks import Block, Ending
from holdfast.guards.deadline import UNTIL, set_back, sooner
from holdfast.guards.fallback import Fallback
from holdfast.guards.faults import Classifier, fault_of, retry_after_of
from holdfast.guards.retry import Retries
from holdfast.guards.ways import ON_LOOP, Way
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import Refused
from holdfast.kernel.tracing import Tracer, tracer

FRESH = 0.25  # seconds between an admission and its call: a later one would break the rate


class Ask:
    """How some calls of a guard differ from others: the limiter's key, their cost, and whether they may be repeated."""

    __slots__ = ("cost", "discard", "key", "lasts", "once", "repeatable")

    def __init__(
        self,
        key: str,
        cost: float,
        repeatable: bool,
        *,
        lasts: bool = False,  # what the call gives goes on: the result is it, and its Ending
        once: bool = False,  # it is not repeated, whatever is known of it
        # Called like the call, before it is repeated, with the seconds that there are for it.
        discard: Callable[[Exception, float], Any] | None = None,
    ) -> None:
        self.key, self.cost, self.repeatable = key, cost, repeatable
        self.lasts, self.once, self.discard = lasts, once, discard

    def lasting(self, *, once: bool, discard: Callable[[Exception, float], Any]) -> Ask:
        """The same for a call whose answer goes on."""
        return Ask(self.key, self.cost, self.repeatable, lasts=True, once=once, discard=discard)

    def single(self) -> Ask:
        """The same for a call that is not repeated."""
        return Ask(self.key, self.cost, self.repeatable, once=True)


class Pipeline:
    """The parts of one guard, in their order; None stands for one that is not there."""

    __slots__ = ("_deadline", "_fallback", "_retries", "_timeout", "classify", "gates")

    def __init__(
        self,
        gates: Gates,
        *,
        timeout: float | None,
        deadline: float | None,
        retries: Retries | None,
        fallback: Fallback[Any] | None,
        classify: Classifier,
    ) -> None:
        self.gates = gates
        self._timeout, self._deadline = timeout, deadline
        self._retries, self._fallback, self.classify = retries, fallback, classify

    @property
    def answers_itself(self) -> bool:
        """Whether there may be an answer that is not the call's."""
        return self._fallback is not None

    def reset(self) -> None:
        """As when nothing was called yet. Calls under way keep their permits of the bulkhead."""
        for part in (self._retries, self.gates.breaker, self.gates.limiter):
            if part is not None:
                part.reset()

    async def run(self, way: Way, ask: Ask, work: partial[Any]) -> Any:
        """The call's result, or what the fallback says instead."""
        fallback = self._fallback
        if fallback is None:
            return await self.retried(way, ask, work)
        try:
            return await self.retried(way, ask, work)
        except Exception as error:
            if not fallback.takes(error, fault_of(error, self.classify)):
                raise
            return await fallback.result(error)

    def retried(
        self, way: Way, ask: Ask, work: partial[Any], *, first: Admission | None = None
    ) -> Coroutine[Any, Any, Any]:
        """Attempts until one succeeds, or there may be no more. The first may be admitted already."""
        if (tracing := tracer()) is None:
            return self._attempts(way, ask, work, first)
        return self._traced(tracing, way, ask, work, first)

    async def _traced(
        self, tracing: Tracer, way: Way, ask: Ask, work: partial[Any], first: Admission | None
    ) -> Any:
        with tracing.calls(self.gates.name):
            return await self._attempts(way, ask, work, first)

    async def _attempts(self, way: Way, ask: Ask, work: partial[Any], first: Admission | None) -> Any:
        until = self._until()
        if self._retries is not None:
            self._retries.first()
        attempt, failure = 1, None
        try:
            while True:
                if first is None:
                    admission = await self._admitted(way, ask, until, failure)
                else:
                    admission, first = self.gates.again(first, until), None
                try:
                    return await self._attempt(way, ask, admission, until, work)
                except Exception as error:
                    wait = self._failed(admission, attempt, error, ask, until)
                    if wait is None:
                        raise
                    failure = error
                except BaseException:
                    admission.cut_off()
                    raise
                if ask.discard is not None:
                    wait = await self._discarded(way, ask.discard, failure, wait, until)
                await way.sleep(wait)
                attempt += 1
        finally:
            del failure  # it knows this frame, which knows it

    async def _discarded(
        self,
        way: Way,
        discard: Callable[[Exception, float], Any],
        failure: Exception,
        wait: float,
        until: float | None,
    ) -> float:
        """What is left of the wait. There is less time for it than until the deadline, or there were none for the next attempt."""
        began = monotonic()
        seconds = math.inf if until is None else max(0.0, until - began) / 2
        await way.attempt(partial(discard, failure, seconds), None)
        return max(0.0, wait - (monotonic() - began))

    async def _admitted(
        self, way: Way, ask: Ask, until: float | None, failure: Exception | None
    ) -> Admission:
        try:
            return await self.gates.admit(way, ask.key, ask.cost, until)
        except Refused as refusal:
            if failure is None:
                raise
            raise failure from refusal  # a call was made, and its error is what the caller must know

    async def _attempt(
        self, way: Way, ask: Ask, admission: Admission, until: float | None, work: partial[Any]
    ) -> Any:
        """One call with its timeout, which is the deadline of guards inside it."""
        seconds = self._seconds(admission, until)
        if seconds is None:
            result = await way.attempt(work, None)
        else:
            mark = UNTIL.set(admission.began + seconds)
            try:
                result = await way.attempt(work, seconds)
            finally:
                set_back(mark)
        if ask.lasts:
            return result, Ending(admission, self.classify)
        admission.succeeded()
        return result

    def _failed(
        self, admission: Admission, attempt: int, error: Exception, ask: Ask, until: float | None
    ) -> float | None:
        """Seconds until the next attempt; None: there is none."""
        fault, retry_after = fault_of(error, self.classify), retry_after_of(error, self.gates.longest_pause)
        admission.failed(error, fault)
        if self._retries is None or ask.once:
            return None
        return self._retries.wait(
            attempt, error, fault, retry_after=retry_after, repeatable=ask.repeatable, until=until
        )

    def _until(self) -> float | None:
        return sooner(None if self._deadline is None else monotonic() + self._deadline)

    def _seconds(self, admission: Admission, until: float | None) -> float | None:
        if until is None:
            return self._timeout
        left = until - admission.began
        return left if self._timeout is None or left < self._timeout else self._timeout

    async def begin(self, ask: Ask, longest: float) -> Begun:
        """Admission now, and the call a little later, on the loop."""
        return Begun(self, ask, await self.gates.admit(ON_LOOP, ask.key, ask.cost, self._until(), longest))

    async def enter(self, way: Way, ask: Ask) -> Block:
        """Admission and deadline only, for a block that is not repeated."""
        until = self._until()
        admission = await self.gates.admit(way, ask.key, ask.cost, until)
        block = Block(admission, self.classify, self._seconds(admission, until))
        if way is ON_LOOP:
            await block.start()
        return block


class Begun:
    """A call that its guard has let through, and that is not made yet: who has it writes something before it."""

    __slots__ = ("_admission", "_ask", "_at", "_pipeline")

    def __init__(self, pipeline: Pipeline, ask: Ask, admission: Admission) -> None:
        self._pipeline, self._ask, self._admission = pipeline, ask, admission
        self._at = monotonic()

    async def run(self, work: partial[Any]) -> Any:
        """Make it. Refused: it was not made, because the breaker has opened meanwhile, or too much time has passed for its quota."""
        first: Admission | None = self._admission
        if monotonic() - self._at > FRESH:
            self.not_made()
            first = None
        return await self._pipeline.retried(ON_LOOP, self._ask, work, first=first)

    def not_made(self) -> None:
        """It will not be."""
        self._admission.not_made()
