"""The steps of one run: what earlier attempts have recorded, and what comes next. Nothing recorded is done again."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from holdfast.jobs.calls import Call
from holdfast.jobs.control import Control, Reject, StepsChanged
from holdfast.jobs.handled import again, kept
from holdfast.jobs.patience import patiently
from holdfast.kernel.clock import monotonic
from holdfast.kernel.codec import encode
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import PayloadError, StepLeft, UsageError
from holdfast.kernel.masking import secret_values
from holdfast.kernel.names import check_name
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.store.ports import Store
from holdfast.store.records import Claim
from holdfast.store.steps import MOST_STEPS, Kind, Progress, Step, StepRecord

_OPEN = (Progress.BEGUN, Progress.UNKNOWN)
CUT_OFF = "its task stopped waiting for it"  # as with a timeout around it
_ADVICE = "Run it with the code that began it, or replay it with edited arguments, and it begins anew."


class Place(msgspec.Struct):
    """Where a step stands in its run."""

    name: str
    number: int
    branch: str
    record: StepRecord | None  # of an earlier attempt
    kind: Kind
    fingerprint: str = ""  # of what its call is given, when that matters
    begun: float = 0.0  # on the monotonic clock: when this run last wrote its intent; 0: it has not
    first: float = 0.0  # the same for the first time

    @property
    def is_open(self) -> bool:
        """Whether its call may have been made, and nobody knows."""
        return self.record is not None and self.record.progress in _OPEN


class Steps:
    """`lost` is called when the claim is no longer ours, and gives the error to raise."""

    def __init__(
        self, claim: Claim, store: Store, home: asyncio.Task[None] | None, lost: Callable[[], Exception]
    ) -> None:
        self._claim, self._store, self._lost = claim, store, lost
        self._home = home or asyncio.current_task()  # the task's own coroutine
        self._branches: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()
        self._loading = asyncio.Lock()
        self._loaded = 0.0  # on the monotonic clock; 0: nothing is known yet
        self._known: dict[str, StepRecord] = {}
        self._expected: dict[str, deque[StepRecord]] = {}  # by branch: recorded, and not asked for yet
        self._asked: set[str] = set()
        # Of these the task does not know what became of them, and nothing is kept of that.
        self._left: list[str] = []
        self._written: set[str] = set()  # by this run
        # What this run knows, and has not heard that it is written: its end, and the result.
        self._unheard: dict[str, tuple[Place, Progress, str | None]] = {}
        self._number = 0  # of the next step that is new
        self._failed: defaultdict[str, list[tuple[Place, Exception]]] = defaultdict(list)  # by branch
        self._guessed: list[tuple[Place, Exception]] = []  # kept as handled, of other coroutines
        self.open: dict[str, Place] = {}  # effects of which nobody knows whether they were done
        self.verdict: Control | None = None  # how the run ends, whatever the task makes of it

    # --- the order of steps ---

    async def place(self, name: str, kind: Kind, *, branch: str | None = None) -> Place:
        """The place of the next step; raises when it is not the one that an earlier attempt has recorded."""
        check_name("step", name)
        if self.verdict is not None:
            raise self.verdict
        self._check_none_left()
        if (failed := self._take_failed(name)) is not None:
            return failed
        if name in self._asked:
            raise UsageError(
                f"Two steps of one job are called {name!r}: the second would get the first one's result. "
                'In a loop, number them: f"upload:{i}".'
            )
        self._asked.add(name)
        branch = self._branch(name) if branch is None else branch
        try:
            await self.load()
            await self._keep_handled(branch)
        except BaseException:
            self._left.append(name)
            raise
        record = self._next_in_order(name, branch)
        if record is not None:
            return Place(name, record.number, branch, record, kind)
        if self._number > MOST_STEPS:
            raise UsageError(f"A job has at most {MOST_STEPS:,} steps. Enqueue a job for each part.")
        self._number += 1
        return Place(name, self._number - 1, branch, None, kind)

    def _branch(self, name: str) -> str:
        """A coroutine beside the task's own is known by its first step: there is no order between the two."""
        task = asyncio.current_task()
        return "" if task is self._home or task is None else self._branches.setdefault(task, name)

    async def load(self) -> None:
        """Once for each run."""
        async with self._loading:
            if self._loaded:
                return
            load = self._store.steps.load
            claim = self._claim
            found = await patiently(
                lambda: load(claim.job_id, claim.generation), what="steps.not_loaded", job=claim.job_id
            )
            self._loaded = monotonic()
            self._known = {each.name: each for each in found}
            self._number = max((each.number + 1 for each in found), default=0)
            for each in found:
                self._expected.setdefault(each.branch, deque()).append(each)

    def _next_in_order(self, name: str, branch: str) -> StepRecord | None:
        record, expected = self._known.get(name), self._expected.get(branch)
        if record is None and not expected:
            return None
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
        if self.verdict is not None:
            raise self.verdict
        self._check_none_left()
        await self.load()
        if missing := [each.name for left in self._expected.values() for each in left]:
            names = ", ".join(map(repr, missing))
            raise self.end_with(
                StepsChanged(f"The task has ended without asking for {names}, recorded by an earlier attempt: "
                    f"the code has changed since. {_ADVICE}")
            )  # fmt: skip
        self._left += [name for name, place in self.open.items() if place.kind is Kind.AT_MOST_ONCE]
        self._check_none_left()

    def end_with(self, verdict: Control) -> Control:
        """Whatever the task does with the error: this is how its run ends."""
        self.verdict = verdict
        return verdict

    async def give_up(self) -> bool:
        """The job would die with effects of which nobody knows whether they were done: then a person must look.

        Also effects that an earlier attempt has begun, and to which this one did not come. What may be done again does no
        harm, and what is known to have failed is known. So is what the run was about to record when it was stopped: that is
        said once more, or an effect that is recorded as done would become unknown.
        """
        await self.load()
        for place, progress, result in list(self._unheard.values()):
            await self.write(place, progress, result=result)
        for record in self._known.values():
            if record.progress in _OPEN and record.name not in self._written:
                self.open[record.name] = Place(
                    record.name, record.number, record.branch, record, record.kind, record.fingerprint
                )
        open_ = [place for place in self.open.values() if place.kind is Kind.AT_MOST_ONCE]
        for place in open_:
            await self.write(place, Progress.UNKNOWN)
        return bool(open_)

    # --- failures that the task handles ---

    def failed(self, place: Place, error: Exception) -> None:
        """If the task goes on all the same, the failure is what it went on with, and stays."""
        self._failed[place.branch].append((place, error))

    def left(self, place: Place) -> None:
        """It ended without a failure that could be kept: the task stopped waiting, or the store was in trouble.

        Later attempts could not go the way of a task that goes on all the same, so this one may not go on.
        """
        if all(place is not each for each, _ in self._failed[place.branch]):
            self._left.append(place.name)

    def _check_none_left(self) -> None:
        if self._left:
            names = ", ".join(map(repr, self._left))
            raise StepLeft(
                f"The task went on without knowing what became of {names}. The next run looks into it."
            )

    def _take_failed(self, name: str) -> Place | None:
        """The task asks again for a step that has failed in this run: it has not gone on without it."""
        for failures in self._failed.values():
            for place, error in failures:
                if place.name == name:
                    failures.remove((place, error))
                    place.record = None
                    return place
        return None

    async def _keep_handled(self, branch: str) -> None:
        """The task's own coroutine has waited for the others, so it has handled their failures too."""
        branches = [branch] if branch else list(self._failed)
        for each in branches:
            for place, error in self._failed.pop(each, []):
                if each != branch:
                    self._guessed.append((place, error))
                await self.write(place, Progress.HANDLED, result=kept(error, secret_values(self._claim.args)))

    async def reconsider(self, error: BaseException) -> None:
        """What ends the run: if it is the failure of another coroutine that was kept, the task had not come to it yet."""
        for place, failure in self._guessed:
            if _is_part(failure, error):
                await self.write(place, Progress.FAILED)

    # --- writing ---

    async def write(
        self,
        place: Place,
        progress: Progress,
        *,
        result: str | None = None,
    ) -> None:
        step = Step(
            name=place.name, number=place.number, branch=place.branch,
            kind=place.kind, progress=progress, fingerprint=place.fingerprint, result=result,
        )  # fmt: skip
        write, claim = self._store.steps.write, self._claim
        self._unheard.pop(place.name, None)
        if progress not in _OPEN:
            self._unheard[place.name] = place, progress, result
        if not await patiently(lambda: write(claim, step), what="steps.not_written", job=claim.job_id):
            raise self._lost()
        self._unheard.pop(place.name, None)
        self._written.add(place.name)
        if progress in _OPEN:
            self.open[place.name] = place
            place.begun = monotonic()
            place.first = place.first or place.begun
        else:
            self.open.pop(place.name, None)

    async def done(self, place: Place, call: Call, result: Any) -> Any:
        """Record it; what the task gets is what later attempts will get."""
        try:
            text = (
                None
                if result is None
                else encode(result, limit=RESULT_LIMIT, where=f"The result of step {place.name!r}")
            )
        except PayloadError as error:
            await self.write(place, Progress.DONE)  # it was done, whatever it said
            raise self.end_with(
                Reject(f"Step {place.name!r} ran to its end, but its result cannot be kept: {error}")
            ) from error
        await self.write(place, Progress.DONE, result=text)
        crashpoint("step.recorded")
        return call.decoded(text)

    def recorded(self, place: Place, record: StepRecord, call: Call) -> Any:
        """What an earlier attempt has recorded for good."""
        if record.progress is Progress.HANDLED:
            failure = again(record.result)
            if place.branch:  # the earlier attempt may have died before it could reconsider
                self._guessed.append((place, failure))
            raise failure
        return call.decoded(record.result)

    def age(self, place: Place, *, first: bool = False) -> float:
        """Seconds since its call was begun, last or first; never more than have passed."""
        record = place.record
        if record is None or (place.begun and not first):
            return monotonic() - (place.first if first else place.begun)
        return record.now - (record.first_at if first else record.at) + monotonic() - self._loaded


def _is_part(failure: Exception, error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_is_part(failure, each) for each in error.exceptions)
    return error is failure


async def run_step(steps: Steps, name: str, call: Call, *, branch: str | None = None) -> Any:
    place = await steps.place(name, Kind.STEP, branch=branch)
    if place.record is not None and not place.is_open and place.record.progress is not Progress.FAILED:
        return steps.recorded(place, place.record, call)
    if place.is_open:
        told = f"Step {name!r} was begun as an effect, and nobody knows whether it was done: it cannot be a step now."
        raise steps.end_with(StepsChanged(f"{told} {_ADVICE}"))
    try:
        try:
            result = await call.run()
        except asyncio.CancelledError:
            steps.failed(place, TimeoutError(CUT_OFF))
            raise
        except Exception as error:
            steps.failed(place, error)
            raise
        crashpoint("step.called")
        return await steps.done(place, call, result)
    except BaseException:
        steps.left(place)
        raise
