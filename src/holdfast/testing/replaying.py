"""`replay`: run a saga's code over a recorded history, and see whether it still takes the same decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast.jobs.attempt import Attempt
from holdfast.jobs.blocking import Portal
from holdfast.jobs.control import Suspended
from holdfast.jobs.step_log import Place
from holdfast.jobs.steps import Steps
from holdfast.kernel.awaits import Awaits, watching
from holdfast.kernel.codec import encode
from holdfast.sagas.groups import called
from holdfast.sagas.log import SagaLog
from holdfast.sagas.plans import read
from holdfast.sagas.running import RunningSaga
from holdfast.sagas.saga import Saga
from holdfast.sagas.stops import Stops
from holdfast.sagas.timeline import History
from holdfast.store.ports import Store
from holdfast.store.records import Claim
from holdfast.store.saga_records import SagaRecord, SagaState
from holdfast.store.saga_verdicts import UNDO
from holdfast.store.steps import Kind, Progress, StepRecord

_WENT_BACK = (SagaState.COMPENSATING, SagaState.UNDONE)


class Replay(msgspec.Struct, frozen=True):
    """What became of it: true when the code goes the way that the history tells."""

    same: bool
    told: str  # where the two differ, or how far the history goes

    def __bool__(self) -> bool:
        return self.same


async def replay(saga: Saga, history: History | Mapping[str, Any] | str) -> Replay:
    """Whether a saga with this history would go on with the code that is here: `assert await replay(create_battle, history)`.

    The history is what `holdfast sagas history ID --json` prints. No step is called: those that are recorded give their
    recorded results, and the code is left where the history ends. Undos must be found, too.
    """
    found = _read(history)
    records = [_step(each) for each in found["steps"]]
    lost = [each for each in records if _is_lost(saga, each)]
    if lost:
        names = ", ".join(f"{each.name!r} ({read(each.plan).undo})" for each in lost)
        return Replay(False, f"The code does not have the undos of these steps: {names}.")
    return await _Rehearsal(saga, found, [each for each in records if not each.name.startswith(UNDO)]).run()


def _is_lost(saga: Saga, record: StepRecord) -> bool:
    undo = read(record.plan).undo
    return undo is not None and saga.script.find(undo) is None


def _read(history: History | Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(history, History):
        return history.as_json()
    found: Mapping[str, Any] = json.loads(history) if isinstance(history, str) else history
    return found


def _step(found: Mapping[str, Any]) -> StepRecord:
    texts: dict[str, Any] = {
        name: None if found[name] is None else json.dumps(found[name], ensure_ascii=False)
        for name in ("result", "plan")
    }
    kept = {
        name: found[name]
        for name in ("name", "number", "branch", "token", "first_at", "at", "tries", "error")
    }
    return StepRecord(
        **kept, **texts, kind=Kind(found["kind"]), progress=Progress(found["progress"]), fingerprint="", now=found["at"]
    )  # fmt: skip


class _Rehearsal:
    def __init__(self, saga: Saga, found: Mapping[str, Any], records: Sequence[StepRecord]) -> None:
        self._saga, self._found, self._records = saga, found, records
        self._awaits = Awaits()
        told = found["saga"]
        self._record = msgspec.convert(
            {**told, "result": None, "asked": None, "deadline": None, "pivot": None}, type=SagaRecord
        )
        self._result = told["result"]

    async def run(self) -> Replay:
        running, steps, stops = self._running()
        signature = self._saga.task.signature
        args, kwargs = signature.arrange(signature.decode(encode(self._found["args"] or {})))
        try:
            with watching(self._awaits):
                result = await called(self._saga.function, running, stops, args, kwargs)
            self._awaits.check()
            await steps.check_all_asked()
        except Suspended as stop:
            self._awaits.forget()
            return self._at_the_end(stop, steps)
        except Exception as error:  # noqa: BLE001  it is what is looked for
            return self._raised(steps.verdict or error, is_verdict=steps.verdict is not None)
        return self._returned(result)

    def _running(self) -> tuple[RunningSaga, _Recorded, Stops]:
        told = self._record
        claim = Claim(
            told.job_id,
            1,
            0.0,
            self._saga.task.name,
            "replay",
            "{}",
            1,
            0,
            False,
            told.started_at,
            0,
            has_steps=True,
        )
        store = cast("Store", _Nothing())  # all that is asked of it is recorded
        attempt = Attempt(claim, store, cast("Portal", None))
        log = SagaLog(store, claim, told, attempt.lose)
        steps = _Recorded(claim, log, self._records, lost=attempt.lose)
        stops = Stops(steps, log)
        return RunningSaga(attempt, log, store, self._saga.script, stops), steps, stops

    def _at_the_end(self, stop: Suspended, steps: _Recorded) -> Replay:
        if missing := steps.not_asked():
            return Replay(
                False, f"It stops at {stop.waits}, and does not come to {', '.join(map(repr, missing))}."
            )
        if self._record.state is SagaState.DONE:
            return Replay(False, f"It goes on with {stop.waits}, and the history says that it was done.")
        return Replay(True, f"The history ends at {stop.waits}.")

    def _raised(self, error: Exception, *, is_verdict: bool) -> Replay:
        if is_verdict:
            return Replay(False, str(error))
        told = f"{type(error).__name__}: {error}"
        if self._record.undoing or self._record.state in _WENT_BACK:
            return Replay(True, f"It fails, as it did: {told}")
        return Replay(False, f"It fails, and the history says that it went on: {told}")

    def _returned(self, result: Any) -> Replay:
        if self._record.undoing:
            return Replay(False, "It comes to its end, and the history says that it failed.")
        now = None if result is None else json.loads(encode(result))
        if self._record.state is SagaState.DONE and now != self._result:
            return Replay(False, f"It returns {now!r}, and the history has {self._result!r}.")
        return Replay(True, "It comes to its end.")


class _Recorded(Steps):
    """What is recorded is given back, and nothing else is done."""

    def __init__(self, claim: Claim, log: SagaLog, records: Sequence[StepRecord], *, lost: Any) -> None:
        super().__init__(claim, _Port(records), None, lost=lost, stopped=lambda: False)

    async def _found_place(self, name: str, kind: Kind, branch: str | None) -> Place:
        place = await super()._found_place(name, kind, branch)
        if not place.is_recorded:
            raise Suspended(None, f"step {name!r}")
        return place

    def not_asked(self) -> list[str]:
        """Recorded with an end, and not come by."""
        return [
            each.name
            for left in self._expected.values()
            for each in left
            if each.progress is not Progress.BEGUN
        ]


class _Port:
    """The steps of the history; nothing is written."""

    def __init__(self, records: Sequence[StepRecord]) -> None:
        self._records = records

    async def load(self, _: str, __: int) -> list[StepRecord]:
        return list(self._records)

    async def write(self, *_: Any) -> bool:
        return True


class _Nothing:
    """Stands for a store: a replay needs none."""
