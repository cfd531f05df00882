"""What handlers of ends and middleware see of a job, and what middleware hears."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from running import record_of
from waiting import until

from holdfast import Backoff, Cancel, Event, Holdfast, Job, Middleware, Secret, Snooze, State
from holdfast.errors import UsageError
from holdfast.guards import Limiter

ONCE = Backoff(attempts=1)


class Hears(Middleware):
    """Times runs, and writes down what it hears."""

    def __init__(self):
        self.told, self.runs, self._under_way = [], [], {}

    def on_started(self, job):
        self._under_way[job.id, job.token] = job

    def _ran(self, job):
        self.runs.append(self._under_way.pop((job.id, job.token), None))

    def on_succeeded(self, job, result):
        self.told.append(("succeeded", job.arguments))
        self._ran(job)

    def on_unknown(self, job, reason):
        self.told.append(("unknown", reason))
        self._ran(job)

    def on_cancelled(self, job, reason):
        self.told.append(("cancelled", reason))

    def on_put_off(self, job, reason, after):
        self.told.append(("put off", reason, after))
        self._under_way.pop((job.id, job.token), None)


@pytest.fixture
def hears(hf):
    middleware = Hears()
    hf.use(middleware)
    return middleware


async def test_arguments_have_the_types_of_the_task_and_no_secrets(hf):
    seen = []

    @hf.task(retry=ONCE)
    async def send(at: datetime, token: Secret[str], times: int = 3) -> None:
        raise ValueError("no")

    @hf.on_dead(send)
    async def tell(job, tx):
        seen.append((job.arguments, job.reason, job.event))

    at = datetime(2026, 1, 1, tzinfo=UTC)
    async with hf.worker():
        await record_of(hf, send, at, "sesame", state=State.DEAD)
    [(arguments, reason, event)] = seen
    assert arguments == {"at": at, "token": "***", "times": 3}
    assert "ValueError: no" in reason
    assert event is None


async def test_arguments_that_do_not_fit_any_more_are_plain(hf, url):
    @hf.task(name="send", retry=ONCE)
    async def send(n: int, key: Secret[str]) -> None: ...

    await send.enqueue(7, "sesame")
    seen = []
    async with Holdfast(url) as newer:

        @newer.task(name="send", retry=ONCE)
        async def sends(n: datetime, key: str) -> None: ...

        @newer.on_dead("send")
        async def tell(job, tx):
            seen.append(job.arguments)

        async with newer.worker():
            await until(lambda: seen)
    assert seen == [{"n": 7, "key": "***"}]


async def test_a_handler_of_events_has_its_event(hf):
    seen = []

    @hf.on("order.*", group="billing", retry=ONCE)
    async def bill(event: Event[dict[str, int]]) -> None:
        raise ValueError("no")

    @hf.on_dead(bill)
    async def tell(job, tx):
        seen.append((job.event, job.arguments))

    async with hf.worker():
        await hf.emit("order.placed", {"id": 1}, key="order:1")
        await until(lambda: seen)
    [(event, arguments)] = seen
    assert (event.type, event.key, event.data) == ("order.placed", "order:1", {"id": 1})
    assert arguments == {"event": event}


async def test_secret_data_of_an_event_is_masked(hf):
    seen = []

    @hf.on("order.*", group="billing", retry=ONCE)
    async def bill(event: Event[Secret[dict[str, str]]]) -> None:
        raise ValueError("no")

    @hf.on_dead(bill)
    async def tell(job, tx):
        seen.append(job.event)

    async with hf.worker():
        await hf.emit("order.placed", {"card": "4242"}, key="order:1")
        await until(lambda: seen)
    assert (seen[0].key, seen[0].data) == ("order:1", "***")


def test_what_a_handler_is_for(hf):
    def bare(n: int) -> None: ...

    task = hf.task(name="bare")(bare)

    @hf.on("a.*", group="one")
    @hf.on("b.*", group="two")
    def hear(event: Event) -> None: ...

    def write(job, tx): ...

    for of in (task, "bare", bare, hear):
        hf.on_dead(of)(write)
        hf.on_unknown(of)(write)
        hf.on_cancelled(of)(write)
    registry = hf._inside.registry
    for state in (State.DEAD, State.UNKNOWN, State.CANCELLED):
        assert len(registry.on_end(state, "bare")) == 3
        assert len(registry.on_end(state, "on:one:hear")) == len(registry.on_end(state, "on:two:hear")) == 1
    for odd in (print, None, 7, lambda: None):
        with pytest.raises(UsageError, match=r"@hf\.on_unknown\("):
            hf.on_unknown(odd)
    with pytest.raises(UsageError, match="An on_cancelled handler is a function"):
        hf.on_cancelled("bare")("write")


# --- middleware ---


async def fail():
    raise ConnectionError("the line is dead")


async def test_middleware_hears_unknown_cancelled_and_put_off(hf, hears):
    @hf.task(retry=ONCE)
    async def work(job: Job, how: str) -> None:
        if how == "unknown":
            await job.effect("call", fail, policy="at_most_once")
        if how == "cancel":
            raise Cancel("gone")
        if how == "snooze" and not hears.told:
            raise Snooze(0.01)

    async with hf.worker():
        for how, state in (("snooze", "succeeded"), ("unknown", "unknown"), ("cancel", "cancelled")):
            await record_of(hf, work, how, state=state)
    assert hears.told[0][0] == "put off"
    assert hears.told[0][2] == 0.01
    assert hears.told[1] == ("succeeded", {"how": "snooze"})
    assert hears.told[2][0] == "unknown"
    assert "call" in hears.told[2][1]
    assert hears.told[3] == ("cancelled", "gone")
    assert len(hears.runs) == 2, "a run that was put off is not timed"
    assert all(hears.runs)


async def test_middleware_hears_what_a_guard_has_put_off(hf, hears):
    service = hf.guard("service", limiter=Limiter(rate=4, burst=1.5))

    @hf.task(retry=ONCE)
    async def work(job: Job, n: int) -> None:
        await job.step("call", nothing, guard=service)

    async with hf.worker():
        handles = await work.enqueue_many([{"n": n} for n in range(3)])
        for each in handles:
            await each.result(10)
    put_off = [each for each in hears.told if each[0] == "put off"]
    assert put_off
    assert {each[2] for each in put_off} == {None}
    assert len([each for each in hears.told if each[0] == "succeeded"]) == 3


async def nothing() -> None: ...


async def test_middleware_hears_a_person_who_cancels(hf, hears):
    @hf.task
    async def work(n: int) -> None: ...

    handle = await work.options(delay=60).enqueue(1)
    await hf.jobs.cancel(handle.id, "gone")
    await hf.jobs.cancel(handle.id, "gone again")
    assert hears.told == [("cancelled", "gone")]
