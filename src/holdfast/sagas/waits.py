"""What a saga waits for, at rest: a time, a signal, an event, another saga. What has come is recorded, and comes again in later runs."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

import msgspec

from holdfast.events.event import AnyEvent, Event
from holdfast.jobs.control import Suspended
from holdfast.jobs.patience import patiently
from holdfast.jobs.step_log import Place
from holdfast.jobs.steps import Steps
from holdfast.kernel.clock import moment, sleep
from holdfast.kernel.errors import SagaUndone
from holdfast.kernel.tracing import follows
from holdfast.sagas.log import SagaLog
from holdfast.sagas.plans import Plan, fitted, read
from holdfast.store.ports import Store
from holdfast.store.saga_records import Heard, NewSaga, SagaState, Wait
from holdfast.store.steps import OPEN, Progress, Step

About: TypeAlias = tuple[str, str | None]  # the type and the key of events
_MOMENT = 0.25  # seconds for which nobody gives up a slot


class Came(msgspec.Struct, frozen=True):
    """The recorded result of a wait."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    timed_out: bool = False
    state: SagaState | None = None  # of another saga
    error: str | None = None
    position: int = 0  # of an event


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An event, as it is recorded."""

    id: str
    type: str
    key: str | None
    version: int | None
    time: float
    correlation_id: str | None
    causation_id: str | None
    trace: str | None
    data: Any

    def event(self) -> AnyEvent:
        return Event(**{**msgspec.structs.asdict(self), "time": moment(self.time)})


class Waits:
    def __init__(self, steps: Steps, log: SagaLog, store: Store) -> None:
        self._steps, self._log, self._store = steps, log, store
        self._looking = (
            asyncio.Lock()
        )  # for events: of two waits for the same, the later sees what the other was given
        self._positions: dict[About, int] = {}  # of the last event that came

    async def sleep(self, name: str, seconds: float) -> None:
        place = await self._steps.awaited(name)
        if not place.is_recorded:
            if place.record is None:
                await self._steps.log.write(place, Progress.BEGUN)
            left = seconds - self._steps.log.age(place)
            if left > _MOMENT:
                raise Suspended(left, f"sleeps for {seconds:g} s")
            await sleep(max(0.0, left))
            await self._steps.log.write(place, Progress.DONE)
        self._steps.waited(place)

    async def signal(
        self,
        name: str,
        signal: str,
        timeout: float | None,  # noqa: ASYNC109  it outlives this process
        late: Exception | None = None,
    ) -> Any:
        """`late` is raised when its time is over, instead of a TimeoutError: then it still waits when it is asked again."""
        place = await self._steps.awaited(name)
        wait = Wait(kind="signal", name=signal)
        came = await self._came(place, wait, timeout, f"signal {signal!r}", late)
        return fitted(bytes(came.value), Any)

    async def event(self, name: str, wait: Wait, timeout: float | None) -> AnyEvent:  # noqa: ASYNC109  as above
        """Of several waits for the same, each gets the next, also of those in branches of one gather."""
        place = await self._steps.awaited(name)
        about = (wait.name, wait.key)
        place.plan = Plan(about=about).text()
        told = f"event {wait.name!r}" if wait.key is None else f"event {wait.name!r} of {wait.key!r}"
        async with self._looking:
            after = msgspec.structs.replace(wait, after=self._last(about))
            came = await self._came(place, after, timeout, told)
            self._positions[about] = max(after.after, came.position)
        event = msgspec.json.decode(came.value, type=Told).event()
        if not place.is_recorded:
            follows(event.trace)
        return event

    def _last(self, about: About) -> int:
        """The position of the last event that any wait for the same was given, by this run or an earlier one."""
        if about not in self._positions:
            given = (
                msgspec.json.decode(record.result, type=Came).position
                for record in self._steps.log.known.values()
                if record.result is not None and record.plan is not None and read(record.plan).about == about
            )
            self._positions[about] = max(given, default=0)
        return self._positions[about]

    async def child(self, name: str, child: NewSaga, returns: Any) -> Any:
        place = await self._steps.awaited(name)
        if not place.is_recorded:
            child = _again(place, child)
            place.plan = Plan(child=child.id).text()
            if place.progress not in OPEN:
                await self._steps.log.write(place, Progress.BEGUN)
            [started] = await patiently(
                lambda: self._store.sagas.start([child]), what="saga.not_started", job=child.job.id
            )
            if started.job_id is None:  # another run has gone on with this saga
                raise self._log.lost()
        came = await self._came(place, Wait(kind="saga", name=child.id), None, f"saga {child.id!r}")
        if came.state is not SagaState.DONE:
            raise SagaUndone(f"The saga {child.id!r} was undone: {came.error}")
        return fitted(bytes(came.value), returns)

    async def _came(
        self,
        place: Place,
        wait: Wait,
        timeout: float | None,  # noqa: ASYNC109  as above
        waits: str,
        late: Exception | None = None,
    ) -> Came:
        """What has come, from the record or from the store. Raises Suspended while nothing has."""
        if place.is_recorded:
            assert place.record is not None
            text = place.record.result
        else:
            left = (
                None if timeout is None else timeout - (self._steps.log.age(place) if place.record else 0.0)
            )
            text = (await self._listen(place, wait, None if late is not None else left)).result
            if text is None and late is not None and left is not None and left <= 0:
                raise late
            if text is None:
                raise Suspended(left, f"waits for {waits}")
        self._steps.waited(place)
        came = msgspec.json.decode(text or "{}", type=Came)
        if came.timed_out:
            raise TimeoutError(f"There was no {waits} within {timeout:g} s.")
        return came

    async def _listen(self, place: Place, wait: Wait, left: float | None) -> Heard:
        step = Step(
            name=place.name, number=place.number, branch=place.branch, kind=place.kind, progress=Progress.BEGUN,
            plan=place.plan,
        )  # fmt: skip
        given_up = left is not None and left <= 0
        return await self._log.listen(step, msgspec.structs.replace(wait, give_up=given_up))


def _again(place: Place, child: NewSaga) -> NewSaga:
    """One that was undone, and shall be done after all, as a person has said, runs anew: under the next id."""
    last = None if place.record is None else read(place.record.plan).child
    if last is None:
        return child
    return msgspec.structs.replace(child, id=f"{last}~" if place.progress is Progress.FAILED else last)
