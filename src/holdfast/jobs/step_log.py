"""What is recorded of one job's steps: read once by a run, and written under its claim."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from holdfast.jobs.calls import Call
from holdfast.jobs.patience import patiently
from holdfast.kernel.clock import monotonic
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import PayloadError
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.store.job_ports import StepLog as StepsPort
from holdfast.store.records import Claim
from holdfast.store.steps import OPEN, Kind, Progress, Step, StepRecord

STEPS_LIMIT = 16 * 2**20  # bytes of all results of one job: a later attempt reads them together
# For good: it is not called again.
_RECORDED = (Progress.DONE, Progress.RESOLVED, Progress.ASIDE, Progress.HANDLED)


class Place(msgspec.Struct):
    """Where a step stands in its run."""

    name: str
    number: int
    branch: str
    record: StepRecord | None  # of an earlier attempt
    kind: Kind
    fingerprint: str = ""  # of what its call is given, when that matters
    begun: float | None = None  # on the monotonic clock: when this run first wrote its intent
    plan: str | None = None  # how it is undone, written with its intent
    tries: int = 0  # that have failed, as far as somebody has to know
    error: str | None = None  # of the last one
    calls: int = 0  # that were made, by this run and earlier ones
    last_call: float | None = None  # on the monotonic clock: when the last one of this run began
    look: float | None = None  # in so many seconds it is looked up again, when nobody knows of it
    doubted: bool = False  # it has failed, and nobody knows whether it was done

    @property
    def progress(self) -> Progress | None:
        """How far an earlier attempt came."""
        return None if self.record is None else self.record.progress

    @property
    def is_open(self) -> bool:
        """Whether its call may have been made, and nobody knows."""
        return self.progress in OPEN

    @property
    def is_recorded(self) -> bool:
        return self.progress in _RECORDED

    def called(self, call: Call) -> None:
        """Count what this run has called since it was counted last."""
        self.calls, call.calls = self.calls + call.calls, 0
        self.last_call = call.began

    def anew(self, kind: Kind) -> Place:
        """It has failed, and is asked for again in the same run."""
        self.kind, self.tries = kind, 0
        if self.record is not None:
            self.record = msgspec.structs.replace(self.record, progress=Progress.FAILED)
        return self


def _took(place: Place) -> float | None:
    """Of what has no intent, which would say it by the database's clock."""
    if place.kind is not Kind.STEP or place.last_call is None:
        return None
    return monotonic() - place.last_call


class StepLog:
    """`lost` is called when the claim is no longer ours, and gives the error to raise."""

    def __init__(self, claim: Claim, store: StepsPort, lost: Callable[[], Exception]) -> None:
        self._claim, self._store, self._lost = claim, store, lost
        self._loading = asyncio.Lock()
        self._loaded: float | None = None  # on the monotonic clock; None: nothing is known yet
        self._written: set[str] = set()  # by this run
        # What this run knows, and has not heard that it is written: its end, and the result.
        self._unheard: dict[str, tuple[Place, Progress, str | None]] = {}
        self._size = 0  # bytes of all results
        self.known: dict[str, StepRecord] = {}  # by name: what earlier attempts have recorded
        self.open: dict[str, Place] = {}  # effects of which nobody knows whether they were done

    def write_to(self, store: StepsPort) -> None:
        """From now on."""
        self._store = store

    async def load(self) -> bool:
        """Once for each run: whether it was now."""
        async with self._loading:
            if self._loaded is not None:
                return False
            load, claim = self._store.load, self._claim
            found = await patiently(
                lambda: load(claim.job_id, claim.generation), what="steps.not_loaded", job=claim.job_id
            )
            self._loaded = monotonic()
            self.known = {each.name: each for each in found}
            self._size = sum(len(each.result or "") for each in found)
            return True

    async def write(
        self,
        place: Place,
        progress: Progress,
        *,
        result: str | None = None,
        intent: bool = False,
    ) -> None:
        """`intent`: a call follows, unless something comes between."""
        step = Step(
            name=place.name, number=place.number, branch=place.branch,
            kind=place.kind, progress=progress, fingerprint=place.fingerprint, result=result,
            plan=place.plan, tries=place.tries, error=place.error, calls=place.calls, intent=intent,
            took=_took(place),
        )  # fmt: skip
        write, claim = self._store.write, self._claim
        self._unheard.pop(place.name, None)
        if progress not in OPEN:
            self._unheard[place.name] = place, progress, result
        if not await patiently(lambda: write(claim, step), what="steps.not_written", job=claim.job_id):
            raise self._lost()
        self._unheard.pop(place.name, None)
        self._written.add(place.name)
        if progress in OPEN:
            self.open[place.name] = place
            if place.begun is None:
                place.begun = monotonic()
        else:
            self.open.pop(place.name, None)

    async def write_unheard(self) -> None:
        """Say once more what the run was about to record when it was stopped."""
        for place, progress, result in list(self._unheard.values()):
            await self.write(place, progress, result=result)

    def left_open(self) -> list[Place]:
        """Effects that only a person can decide, also those that an earlier attempt has begun, and to which this one did not come."""
        for record in self.known.values():
            if record.progress in OPEN and record.name not in self._written:
                self.open[record.name] = Place(
                    record.name,
                    record.number,
                    record.branch,
                    record,
                    record.kind,
                    record.fingerprint,
                    calls=record.calls,
                )
        return [
            place
            for place in self.open.values()
            if place.kind is Kind.AT_MOST_ONCE or place.progress is Progress.UNKNOWN
        ]

    def encoded(self, place: Place, result: object) -> str | None:
        if result is None:
            return None
        text = encode(result, limit=RESULT_LIMIT, where=f"The result of step {place.name!r}")
        if self._size + len(text) > STEPS_LIMIT:
            raise PayloadError(
                f"the results of all its steps are more than {STEPS_LIMIT:,} bytes. Return less, such as where it is stored."
            )
        self._size += len(text)
        return text

    def age(self, place: Place) -> float:
        """Seconds since its call was first begun; never more than have passed."""
        record, now = place.record, monotonic()
        if record is None:
            return 0.0 if place.begun is None else now - place.begun
        return record.now - record.first_at + self._since_loaded(now)

    def sought_for(self, place: Place) -> float:
        """Seconds since an earlier attempt first looked for it in vain."""
        record = place.record
        assert record is not None
        return record.now - record.at + self._since_loaded(monotonic())

    def _since_loaded(self, now: float) -> float:
        assert self._loaded is not None
        return now - self._loaded
