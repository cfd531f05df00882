"""The steps of one run: what earlier attempts have recorded, and what comes next. Nothing recorded is done again."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from holdfast.jobs.branches import HOME, Branches
from holdfast.jobs.calls import Call
from holdfast.jobs.control import Control, EffectUnknown, Gated, Reject, StepsChanged, Suspended
from holdfast.jobs.failures import describe
from holdfast.jobs.handled import again, is_part, kept
from holdfast.jobs.step_log import Place, StepLog
from holdfast.kernel.clock import patience, timeout
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import DeadlinePassed, HoldfastError, PayloadError, StepLeft, UsageError
from holdfast.kernel.masking import secret_values
from holdfast.kernel.names import check_name
from holdfast.kernel.spawn import over
from holdfast.kernel.threads import Stopped
from holdfast.kernel.tracing import step as span_of
from holdfast.store.job_ports import StepLog as StepsPort
from holdfast.store.records import Claim
from holdfast.store.steps import MOST_STEPS, Kind, Progress, StepRecord

_NOT_DEMANDED = (Progress.FAILED, Progress.ASIDE, Progress.HANDLED)  # a later attempt need not come by
LAST_CALLS = 60.0  # seconds for which a run that has failed waits for calls that go on beside it
LAST_WORDS = 1.0  # seconds to write what it knows: its worker may be leaving
CUT_OFF = "its task stopped waiting for it"  # as with a timeout around it
_ADVICE = "Run it with the code that began it, or replay it with edited arguments, and it begins anew."


class Steps:
    """`lost` is called when the claim is no longer ours, and gives the error to raise; `stopped` tells whether to stop."""

    def __init__(
        self,
        claim: Claim,
        store: StepsPort,
        home: asyncio.Task[None] | None,
        *,
        lost: Callable[[], Exception],
        stopped: Callable[[], bool],
    ) -> None:
        self._args, self._stopped = claim.args, stopped
        self.log = StepLog(claim, store, lost)
        self.branches = Branches(home)
        self._last: dict[str, str] = {}  # by branch: the step that it has asked for last
        self._placing = asyncio.Lock()
        self._expected: dict[str, deque[StepRecord]] = {}  # by branch: recorded, and not asked for yet
        self._asked: set[str] = set()
        # Of these the task does not know what became of them, and nothing is kept of that.
        self._left: list[str] = []
        self._number = 0  # of the next step that is new
        self._failed: defaultdict[str, list[tuple[Place, Exception]]] = defaultdict(list)  # by branch
        self._handled: list[tuple[Place, Exception]] = []  # failures that are kept, and known to this run
        self._done: list[Place] = []  # results that are kept, and known to this run
        # Steps that were asked for, and have not answered.
        self._under_way: dict[asyncio.Future[None], str] = {}
        self._closed = False  # the run has ended: nothing more begins
        self.look_after: float | None = None  # seconds until what was given up is looked up again
        self.verdict: Control | None = None  # how the run ends, whatever the task makes of it

    # --- the order of steps ---

    @asynccontextmanager
    async def asked(self, name: str, kind: Kind, *, branch: str | None = None) -> AsyncIterator[Place]:
        """The place of the next step; raises when it is not the one that an earlier attempt has recorded."""
        check_name("step", name)
        self.check_goes_on()
        asked = asyncio.get_running_loop().create_future()
        self._under_way[asked] = name
        try:
            place = await self._place(name, kind, branch)
            try:
                if place.is_recorded:
                    yield place
                else:
                    with span_of(name, kind):
                        yield place
            except Suspended:
                raise
            except BaseException:
                if not place.is_recorded:
                    self._leave(place)
                raise
        finally:
            del self._under_way[asked]
            asked.cancel()

    async def awaited(self, name: str) -> Place:
        """The place of a step that only waits: who stops waiting leaves nothing behind."""
        check_name("step", name)
        self.check_goes_on()
        return await self._place(name, Kind.AT_LEAST_ONCE, None)

    def waited(self, place: Place) -> None:
        """What it has waited for is recorded."""
        self.log.open.pop(place.name, None)
        self._done.append(place)

    def check_goes_on(self) -> None:
        """Raise when the run is to end, or has: what it does now, later attempts could not do in the same way."""
        if self._stopped():
            raise Stopped
        if self.verdict is not None:
            raise self.verdict
        if self._closed:
            raise UsageError("The run of this job has ended: a step belongs to a task that waits for it.")
        if self._left:
            raise self._went_on()

    def _went_on(self) -> StepLeft:
        names = ", ".join(map(repr, self._left))
        return StepLeft(
            f"The task went on without knowing what became of {names}. The next run looks into it."
        )

    async def _place(self, name: str, kind: Kind, branch: str | None) -> Place:
        """One after the other: while a failure is being kept, nobody asks for that step again."""
        try:
            await self._placing.acquire()
        except BaseException:
            self._left.append(name)
            raise
        try:
            self.check_goes_on()  # it may have waited
            return await self._found_place(name, kind, branch)
        finally:
            self._placing.release()

    async def _found_place(self, name: str, kind: Kind, branch: str | None) -> Place:
        if (failed := self._take_failed(name, kind) or self._take_back(name, kind)) is not None:
            self.branches.go_on(failed.branch, name, branch)
            return failed
        if name in self._asked:
            raise UsageError(
                f"Two steps of one job are called {name!r}: the second would get the first one's result. "
                'In a loop, number them: f"upload:{i}".'
            )
        self._asked.add(name)
        branch = self.branches.current(name) if branch is None else branch
        try:
            await self.load()
            await self._keep_handled(branch)
        except BaseException:
            self._left.append(name)
            raise
        record = self._next_in_order(name, branch)
        self._last[branch] = name
        if record is not None:
            return Place(name, record.number, branch, record, kind, tries=record.tries, calls=record.calls)
        if self._number >= MOST_STEPS:
            raise UsageError(
                f"A job has at most {MOST_STEPS:,} steps, and so has a saga, whose waits are steps. Make a job, or a saga, of each part."
            )
        self._number += 1
        return Place(name, self._number - 1, branch, None, kind)

    async def load(self) -> None:
        """What earlier attempts have recorded, in their order."""
        if not await self.log.load():
            return
        found = self.log.known.values()
        self._number = max((each.number + 1 for each in found), default=0)
        for each in found:
            if each.progress not in _NOT_DEMANDED:
                self._expected.setdefault(each.branch, deque()).append(each)

    def _next_in_order(self, name: str, branch: str) -> StepRecord | None:
        record, expected = self.log.known.get(name), self._expected.get(branch)
        if record is None and not expected:
            return None
        if record is not None and record.progress in _NOT_DEMANDED:
            return record
        if record is not None and expected and expected[0] is record:
            return expected.popleft()
        if not expected:
            told = f"Step {name!r} was recorded by an earlier attempt, and elsewhere in the task"
        elif record is None:
            told = f"Step {name!r} is new, and {expected[0].name!r}, which an earlier attempt recorded here, is missing"
        else:
            told = f"Step {name!r} comes before {expected[0].name!r}, and an earlier attempt recorded them the other way round"
        raise self.end_with(StepsChanged(f"{told}: the code has changed since. {_ADVICE}"))

    async def check_all_asked(self) -> None:
        """At the end: a recorded step that nobody asked for would be forgotten without a word.

        So would an effect for which the task did not wait.
        """
        self.check_goes_on()
        self.close()
        await self.load()
        if missing := [each.name for left in self._expected.values() for each in left]:
            names = ", ".join(map(repr, missing))
            raise self.end_with(
                StepsChanged(f"The task has ended without asking for {names}, recorded by an earlier attempt: "
                    f"the code has changed since. {_ADVICE}")
            )  # fmt: skip
        self._left += self._under_way.values()
        self._left += [name for name, place in self.log.open.items() if place.kind is Kind.AT_MOST_ONCE]
        if self._left:
            raise self._went_on()

    async def last_calls(self) -> None:
        """The task has failed, and calls of its effects go on beside it: what they answer is recorded, and not lost with the run."""
        self.close()
        calls = [asked for asked, name in self._under_way.items() if name in self.log.open]
        with suppress(TimeoutError):
            async with timeout(LAST_CALLS):
                await over(*calls)

    async def last_words(self) -> None:
        """What the run was about to record when it was stopped: an answer that it has must not become one that nobody knows."""
        with suppress(HoldfastError, TimeoutError):
            async with patience(LAST_WORDS):
                await self.log.write_unheard()

    def close(self) -> None:
        """The task has ended: what it has left behind begins nothing more."""
        self._closed = True

    def reopen(self) -> None:
        """It has not ended after all."""
        self._closed = False

    def end_with(self, verdict: Control) -> Control:
        """Whatever the task does with the error: this is how its run ends."""
        self.verdict = verdict
        return verdict

    async def give_up(self) -> list[str]:
        """The job would die with these effects, of which nobody knows whether they were done: then a person must look.

        Also effects that an earlier attempt has begun, and to which this one did not come. What may be done again does no
        harm, and what is known to have failed is known. So is what the run was about to record when it was stopped: that is
        said once more, or an effect that is recorded as done would become unknown.
        """
        await self.load()
        await self.log.write_unheard()
        open_ = self.log.left_open()
        for place in open_:
            await self.log.write(place, Progress.UNKNOWN)
        self.look_after = min((place.look for place in open_ if place.look is not None), default=None)
        return [place.name for place in open_]

    # --- failures that the task handles ---

    def unhandled(self) -> list[Place]:
        """The steps that have failed, and that the task has not gone on without."""
        return [place for failures in self._failed.values() for place, _ in failures]

    def failed(self, place: Place, error: Exception) -> None:
        """If the task goes on all the same, the failure is what it went on with, and stays."""
        self._failed[place.branch].append((place, error))

    def _leave(self, place: Place) -> None:
        """It ended without a failure that could be kept: the task stopped waiting, or the store was in trouble.

        Later attempts could not go the way of a task that goes on all the same, so this one may not go on.
        """
        if all(place is not each for each, _ in self._failed[place.branch]):
            self._left.append(place.name)

    def _take_failed(self, name: str, kind: Kind) -> Place | None:
        """The task asks again for a step that has failed in this run: it has not gone on without it."""
        for failures in self._failed.values():
            for place, error in failures:
                if place.name == name:
                    failures.remove((place, error))
                    return place.anew(kind)
        return None

    def _take_back(self, name: str, kind: Kind) -> Place | None:
        """The same, after others have gone on beside it: for them its failure was kept, but its own way has not gone on."""
        for place, error in self._handled:
            if place.name == name:
                if self._last.get(place.branch) != name or self._expected.get(place.branch):
                    return None
                self._handled.remove((place, error))
                return place.anew(kind)
        return None

    async def _keep_handled(self, by: str) -> None:
        """Who goes on has handled its own failures, and those of what has ended: it may have waited for that."""
        for branch in [each for each in self._failed if self.branches.has_handled(each, by)]:
            for place, error in self._failed.pop(branch, []):
                await self._keep(place, error, by)

    async def _keep(self, place: Place, error: Exception, by: str) -> None:
        text = kept(error, secret_values(self._args))
        if not isinstance(again(text), type(error)):
            if by not in (HOME, place.branch):  # who has ended beside it may be about to end the run
                self.failed(place, error)
                return
            raise self.end_with(
                Reject(f"Step {place.name!r} failed with {type(error).__qualname__}, which cannot be kept: where the task "
                    "catches it now, a later attempt would not. Catch it in the function of the step.")
            )  # fmt: skip
        await self.log.write(place, Progress.HANDLED, result=text)
        self._handled.append((place, error))

    async def reconsider(self, error: BaseException) -> None:
        """What ends the run, if it is a failure that was kept, was not handled after all.

        Nor is the way that the task took after it one that later attempts must take: they try the step again. But where an
        effect was done instead of what has failed, that failure stays: the way around it would be a second effect.
        """
        failed = [place for place, failure in self._handled if is_part(failure, error)]
        first = min((place.number for place in failed), default=MOST_STEPS)
        done = [each for each in self._done if each.number > first]
        last = max((each.number for each in done if each.kind is not Kind.STEP), default=0)  # effect
        failed += [place for place, _ in self._handled if place.number > max(first, last)]
        for place in failed:
            await self.log.write(place, Progress.BEGUN if place.doubted else Progress.FAILED)
        for place in done:
            await self.log.write(place, Progress.ASIDE)

    # --- writing ---

    async def done(
        self,
        place: Place,
        call: Call,
        result: Any,
        *,
        found: bool = False,
        unkept: Callable[[str], Control] | None = None,
    ) -> Any:
        """Record it; what the task gets is what later attempts will get. What a lookup has found must be of that type.

        `unkept` says how the run ends when the result of an effect cannot be kept; None: a person has to look.
        """
        try:
            text = self.log.encoded(place, result)
            if found:
                call.fitting(text)
        except PayloadError as error:
            raise await self._cannot_be_kept(place, error, unkept) from error
        await self.log.write(place, Progress.DONE, result=text)
        self._done.append(place)
        crashpoint("step.recorded")
        return call.decoded(text)

    async def _cannot_be_kept(
        self, place: Place, error: PayloadError, unkept: Callable[[str], Control] | None
    ) -> Control:
        """A step may be run again. An effect was done, and only a person can say with which result."""
        if place.kind is Kind.STEP:
            await self.log.write(place, Progress.FAILED)
            told = f"Step {place.name!r} ran to its end, but its result cannot be kept: {error}"
            return self.end_with(Reject(told))
        told = f"Effect {place.name!r} was done, but its result cannot be kept: {error}"
        return await self.unknown(place, told) if unkept is None else self.end_with(unkept(told))

    def held(self, place: Place, call: Call, refusal: Exception) -> Control:
        """Its guard has refused it, and nothing was called."""
        assert call.door is not None
        told = f"step {place.name!r} was refused by its guard: {refusal}"
        return self.end_with(Gated(told, call.door.key, call.door.guard))

    async def unknown(self, place: Place, why: str, *, look: float | None = None) -> Control:
        await self.log.write(place, Progress.UNKNOWN)
        return self.end_with(EffectUnknown(why, look))

    async def recorded(self, place: Place, call: Call) -> Any:
        """What an earlier attempt, or a person, has recorded for good."""
        assert place.record is not None
        text = place.record.result
        if place.progress is Progress.HANDLED:
            failure = again(text)
            place.doubted = place.doubted or place.record.kind is Kind.AT_LEAST_ONCE
            self._handled.append((place, failure))
            raise failure
        self._done.append(place)
        if place.progress is not Progress.RESOLVED:
            return call.decoded(text)
        try:
            return call.fitting(text)
        except PayloadError as error:
            told = f"The result that a person gave for effect {place.name!r} does not fit: {error}"
            raise await self.unknown(place, told) from error

    def told(self, error: Exception) -> str:
        """What it said, without secrets."""
        return describe(error, secret_values(self._args), where=False) or type(error).__name__


async def run_step(steps: Steps, name: str, call: Call, *, branch: str | None = None) -> Any:
    async with steps.asked(name, Kind.STEP, branch=branch) as place:
        if place.is_recorded:
            return await steps.recorded(place, call)
        if place.is_open:
            told = f"Step {name!r} was begun as an effect, and nobody knows whether it was done: it cannot be a step now."
            raise steps.end_with(StepsChanged(f"{told} {_ADVICE}"))
        try:
            result = await call.run()
        except asyncio.CancelledError:
            steps.failed(place, TimeoutError(CUT_OFF))
            raise
        except Exception as error:
            if error is call.turned_away and not isinstance(error, DeadlinePassed):
                raise steps.held(place, call, error) from error
            steps.failed(place, error)
            raise
        finally:
            place.called(call)
        crashpoint("step.called")
        return await steps.done(place, call, result)
