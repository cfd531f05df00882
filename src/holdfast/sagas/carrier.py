"""One run of the job that carries a saga: forward through its function, or back through what it has done."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from holdfast.jobs.attempt import Attempt
from holdfast.jobs.control import Control, EffectUnknown, Retry, Snooze, StepsChanged, Suspended
from holdfast.jobs.failures import describe
from holdfast.jobs.job import Job, attempt_of
from holdfast.jobs.patience import patiently
from holdfast.jobs.step_log import Place
from holdfast.kernel.clock import timeout
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import TROUBLE, LeaseLost, PayloadError, StepLeft, TransactionEnded
from holdfast.kernel.masking import hide, secret_values
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.sagas.endings import Asked, Failed, OutOfTime, is_cancelled
from holdfast.sagas.groups import called
from holdfast.sagas.log import SagaLog
from holdfast.sagas.pivots import Pivots, Verdict
from holdfast.sagas.running import RunningSaga
from holdfast.sagas.script import Script
from holdfast.sagas.stepping import put_off
from holdfast.sagas.stops import Stops
from holdfast.sagas.stuck import Stuck
from holdfast.sagas.undoing import Undoing
from holdfast.store.ports import Store
from holdfast.store.saga_records import Move, Rest, SagaRecord, SagaState
from holdfast.store.steps import Kind, Progress, Step

_PARKED = 15.0  # seconds until code that did not fit is tried again, and longer each time
_PARKED_LONGEST = 600.0
_GRACE = 5.0  # seconds that a saga has beyond its timeout: its calls end before that
_AGAIN = 2.0  # seconds, about, until a run that could not say how it ended is repeated
_NOT_ITS_FAULT = (*TROUBLE, StepLeft, TransactionEnded)


class Carrier:
    """What a job of the task `saga:{name}` does. It ends when its saga is over, and rests in between."""

    def __init__(self, attempt: Attempt, store: Store, record: SagaRecord, script: Script) -> None:
        self._attempt, self._store, self._script = attempt, store, script
        self._log = SagaLog(store, attempt.claim, record, attempt.lose)
        self._steps = attempt.record_in(self._log)
        self._undoing = Undoing(attempt, store, self._log, script)
        self._pivots = Pivots(attempt, self._log, script)

    async def run(self, arguments: tuple[list[Any], dict[str, Any]]) -> Any:
        record = self._log.record
        if record.finished_at is not None:  # its job did not hear of it
            self._attempt.vouched = True
            return None if record.result is None else decode_stored(record.result)
        try:
            if record.undoing:
                return await self._back()
            return await self._forward(arguments)
        except Suspended as stop:
            await self._rest(stop, undoing=record.undoing)
        except Stuck as stuck:
            await self._stop(stuck)
        except (LeaseLost, *TROUBLE):
            raise
        except Exception as error:  # noqa: BLE001  of no step: its job would fail for hours, and its saga say nothing of that
            await self._stop(Stuck(SagaState.PARKED, f"It cannot go on here: {self._told(error)}"))
        return None

    # --- forward ---

    async def _forward(self, arguments: tuple[list[Any], dict[str, Any]]) -> Any:
        stops = Stops(self._steps, self._log)
        saga = RunningSaga(self._attempt, self._log, self._store, self._script, stops)
        try:
            stops.check_goes_on("begin")
            args, kwargs = arguments
            result = await self._called(saga, stops, args, kwargs)
            stops.check_none()
            self._attempt.awaits.check()
            await self._steps.check_all_asked()
            text = (
                None if result is None else encode(result, limit=RESULT_LIMIT, where="The result of the saga")
            )
        except Suspended:
            self._attempt.awaits.forget()
            await self._steps.last_calls()
            verdict = self._steps.verdict
            if verdict is None:
                raise
            return await self._failed(verdict)
        except (asyncio.CancelledError, SystemExit) as error:
            if is_cancelled():
                raise
            await self._steps.last_calls()
            return await self._failed(Failed(f"Its code has ended by {error!r}, which nobody asked it for."))
        except Exception as error:  # noqa: BLE001  whatever ends the function, ends the saga
            await self._steps.last_calls()
            return await self._failed(error)
        return await self._done(result, text)

    async def _called(self, saga: RunningSaga, stops: Stops, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What hangs between steps is cut off too, when its saga is out of time and has not passed its pivot."""
        left = None if self._log.pivot is not None else self._log.time_left
        if left is None:
            return await called(self._script.function, saga, stops, args, kwargs)
        limit = timeout(max(0.0, left) + _GRACE)
        self._log.at_pivot = partial(limit.reschedule, None)
        try:
            async with limit:
                return await called(self._script.function, saga, stops, args, kwargs)
        except TimeoutError:
            if limit.expired():
                raise self._steps.end_with(OutOfTime("its timeout has passed between its steps")) from None
            raise
        finally:
            self._log.at_pivot = None

    async def _done(self, result: Any, text: str | None) -> Any:
        written = await self._log.move(Move(state=SagaState.DONE, result=text))
        if not written.moved and written.asked is not None:
            return await self._failed(Asked(written.asked))
        self._over(SagaState.DONE)
        return result

    def _over(self, state: SagaState) -> None:
        self._attempt.vouched = True
        crashpoint("saga.over")
        note("saga.over", saga=self._log.record.id, name=self._log.record.name, state=state)

    async def _failed(self, error: Exception) -> Any:
        """The function has ended by this: it is tried again, left to a person, or undone."""
        self._steps.close()
        await self._steps.reconsider(error)
        error = _meant(self._steps.verdict or error)
        if isinstance(error, LeaseLost):
            raise error
        if isinstance(error, _NOT_ITS_FAULT):
            raise Suspended(jittered(_AGAIN), f"is tried again: {error}")
        if isinstance(error, Snooze | Retry):
            raise Suspended(error.outcome.after, str(error))
        if isinstance(error, EffectUnknown):
            raise Stuck(SagaState.NEEDS_OPERATOR, str(error))
        if isinstance(error, Stuck):
            raise error
        if isinstance(error, StepsChanged):
            raise Stuck(SagaState.PARKED, str(error))
        if (off := put_off(error, self._log.record.name)) is not None:
            raise off
        return await self._decide(error)

    async def _decide(self, error: Exception) -> Any:
        """To compensate, unless there is no way back. The decision is written with the step that has failed."""
        told = self._told(error)
        match await self._pivots.look():
            case Verdict.PASSED:
                return await self._past_the_pivot(error, told)
            case Verdict.UNKNOWN:
                raise Stuck(SagaState.NEEDS_OPERATOR, f"{told}\n{self._pivots.why()}")
            case Verdict.NOT_PASSED:
                pass
        failed = [self._as_failed(place) for place in self._steps.unhandled()]
        for step in failed[1:]:
            await self._log.keep(step)
        move = Move(state=SagaState.COMPENSATING, undoing=True, error=told)
        await self._log.move(move, step=failed[0] if failed else None)
        note("saga.undoing", saga=self._log.record.id, name=self._log.record.name, error=told)
        crashpoint("saga.decided")
        try:
            return await self._back()
        except Suspended as stop:
            await self._rest(stop, undoing=True)
            return None

    async def _past_the_pivot(self, error: Exception, told: str) -> Any:
        if isinstance(error, Asked | OutOfTime):
            raise Suspended(0.0, "goes on: it has passed its pivot")
        pivot = self._log.pivot
        raise Stuck(
            SagaState.NEEDS_OPERATOR,
            f"{told}\nIt has passed its pivot {pivot!r}, so nothing is undone. When the cause is mended, let it go on.",
            steps=[self._as_failed(place) for place in self._steps.unhandled()],
        )

    def _as_failed(self, place: Place) -> Step:
        """What may have been done stays open: it is undone, or reconciled first."""
        is_open = place.name in self._steps.log.open
        return Step(
            name=place.name, number=place.number, branch=place.branch, kind=place.kind, fingerprint=place.fingerprint,
            progress=Progress.BEGUN if is_open and place.kind is not Kind.STEP else Progress.FAILED,
            plan=place.plan, tries=place.tries, error=place.error, calls=place.calls,
        )  # fmt: skip

    def _told(self, error: Exception) -> str:
        """What it said, and where; nothing of what is secret."""
        return describe(error, secret_values(self._attempt.claim.args), where=not isinstance(error, Control))

    # --- back ---

    async def _back(self) -> None:
        await self._undoing.run()
        await self._log.move(Move(state=SagaState.UNDONE, undoing=True))
        self._over(SagaState.UNDONE)

    # --- resting ---

    async def _rest(self, stop: Suspended, *, undoing: bool) -> None:
        crashpoint("saga.resting")
        state = SagaState.COMPENSATING if undoing else SagaState.WAITING
        waits = self._without_secrets(stop.waits)
        await self._part(Move(state=state, undoing=undoing, waits=waits), self._at_most(stop.after, undoing))

    def _at_most(self, after: float | None, undoing: bool) -> Rest:
        """Not beyond its deadline, when that still counts."""
        if not undoing and self._log.pivot is None and (left := self._log.time_left) is not None:
            after = max(0.0, left) if after is None else min(after, max(0.0, left))
        return Rest(after)

    def _without_secrets(self, text: str) -> str:
        return hide(text, secret_values(self._attempt.claim.args))

    async def _stop(self, stuck: Stuck) -> None:
        for step in stuck.steps[1:]:
            await self._log.keep(step)
        record, told = self._log.record, self._without_secrets(str(stuck))
        if (record.state, record.error) != (stuck.state, told):
            note("saga.stuck", saga=record.id, name=record.name, state=stuck.state, error=told)
        move = Move(state=stuck.state, undoing=stuck.undoing, error=told)
        await self._part(move, self._until_it_fits(stuck), stuck.steps[0] if stuck.steps else None)

    def _until_it_fits(self, stuck: Stuck) -> Rest:
        """Other code may be on its way, or on another worker: then a parked saga goes on by itself."""
        if stuck.state is not SagaState.PARKED:
            return Rest()
        record = self._log.record
        parked_for = record.now - record.at if record.state is SagaState.PARKED else 0.0
        after = jittered(min(max(_PARKED, 2 * parked_for), _PARKED_LONGEST))
        return self._at_most(after, stuck.undoing or record.undoing)

    async def _part(self, move: Move, rest: Rest, step: Step | None = None) -> None:
        """From now on the job is not ours: nobody renews it, and whoever is woken may run it."""
        await self._log.move(move, step=step, rest=rest, during=self._parting)

    @contextmanager
    def _parting(self) -> Generator[None, None, None]:
        """A try that was refused leaves the job ours: until the next one it is renewed, or it would be rescued meanwhile."""
        self._attempt.parted = True
        try:
            yield
        except BaseException:
            self._attempt.parted = False
            raise


def _meant(error: BaseException) -> Exception:
    """What one of many coroutines has said on purpose, and nothing else has happened: the saga says so."""
    inner = error
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
    if isinstance(inner, Control | LeaseLost | StepLeft | PayloadError | Stuck):
        return inner
    assert isinstance(error, Exception)
    return error


async def carry(job: Job, store: Store, script: Script, arguments: tuple[list[Any], dict[str, Any]]) -> Any:
    record = await patiently(lambda: store.sagas.of_job(job.id), what="saga.not_read", job=job.id)
    if record is None:
        raise StepsChanged(f"Job {job.id} carries no saga: its row is gone, or it was enqueued by hand.")
    return await Carrier(attempt_of(job), store, record, script).run(arguments)
