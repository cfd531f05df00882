"""`uncharged=` of a guard: an outage burns no attempt, from the first call on; a job whose own fault it is dies all the same."""

import asyncio

import pytest
from waiting import until

from holdfast import Backoff, Job
from holdfast.guards import Breaker, Fault, Limiter
from holdfast.jobs import deferral
from holdfast.kernel.errors import JobDead, UsageError
from holdfast.store.states import State

FEW = Backoff(attempts=3, first=0.01, ceiling=0.02)
OUTAGE = {Fault.THROTTLED, Fault.TRANSIENT, Fault.UNKNOWN}
WAYS = ["gate", "step", "at_least_once"]


class Stripe:
    """It charges, or is down."""

    def __init__(self):
        self.is_down, self.calls, self.charges = True, 0, []

    async def charge(self, order):
        self.calls += 1
        await asyncio.sleep(0.01)
        if self.is_down:
            raise ConnectionRefusedError(111, "Stripe is down")
        self.charges.append(order)

    async def refuse(self, order):
        raise Declined(f"order {order} is declined")


class Declined(Exception):
    """Of a type that nobody knows: an unknown fault."""


@pytest.fixture
def stripe():
    return Stripe()


@pytest.fixture
def quick(monkeypatch):
    """The waits between two put-offs, without their time."""
    monkeypatch.setattr(deferral, "_LONGEST", 0.01)


def charging(hf, call, way, **options):
    guard = hf.guard("stripe", uncharged=OUTAGE, **options)

    @hf.task(name="charge", retry=FEW, guard=guard if way == "gate" else None)
    async def charge(job: Job, order: int) -> None:
        if way == "gate":
            await guard.call(call, order)
        elif way == "step":
            await job.step("charge", call, order, guard=guard)
        else:
            await job.effect("charge", call, order, policy=way, guard=guard)

    return guard, charge


async def attempts_of(handles):
    return [(await handle.record()).attempt for handle in handles]


@pytest.mark.parametrize("way", WAYS)
async def test_an_outage_kills_nobody_and_charges_nobody(hf, stripe, way):
    """With a breaker that opens late, after ten calls, and tasks that have three attempts."""
    breaker = Breaker(failure_ratio=0.5, minimum=10, window=30, cooldown=0.3, permits=1)
    _, charge = charging(hf, stripe.charge, way, breaker=breaker)
    async with hf.worker({"default": 8}):
        handles = await charge.enqueue_many([{"order": order} for order in range(30)])
        await until(lambda: stripe.calls >= 14)  # it is open, and probes have failed
        assert set(await attempts_of(handles)) <= {0, 1}
        stripe.is_down = False
        for handle in handles:
            await handle.result(20)
    assert await attempts_of(handles) == [1] * 30
    assert sorted(stripe.charges) == [*range(30)]
    assert [(await handle.record()).errors for handle in handles] == [()] * 30


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", WAYS)
async def test_after_so_many_times_it_is_charged_and_dies(hf, stripe, way):
    """Nothing else fails, so no breaker opens: it is the job's own fault."""
    _, charge = charging(hf, stripe.refuse, way, limiter=Limiter(rate=1000))
    async with hf.worker():
        handle = await charge.enqueue(order=1)
        with pytest.raises(JobDead, match="order 1 is declined"):
            await handle.result(20)
    record = await handle.record()
    assert (record.state, record.attempt, len(record.errors)) == (State.DEAD, 3, 3)


@pytest.mark.usefixtures("quick")
async def test_a_replay_may_be_put_off_as_often_again(hf, stripe):
    calls = []

    async def refuse(order):
        calls.append(order)
        raise Declined(order)

    _, charge = charging(hf, refuse, "gate")
    async with hf.worker():
        handle = await charge.enqueue(order=1)
        for number in (1, 2):
            await until(lambda: _is_dead(handle))
            assert len(calls) == number * (deferral.PUT_OFFS + 3)
            if number == 1:
                await hf.dead.replay([handle.id], actor="ada")
                await until(lambda: len(calls) > deferral.PUT_OFFS + 3)


async def _is_dead(handle):
    return (await handle.record()).state is State.DEAD


async def test_a_failure_that_no_call_of_the_guard_has_met_is_charged(hf, stripe):
    stripe.is_down = False
    guard = hf.guard("stripe", uncharged=OUTAGE)

    @hf.task(name="charge", retry=FEW, guard=guard)
    async def charge(order: int) -> None:
        await guard.call(stripe.charge, order)
        raise Declined("by our own code")

    async with hf.worker():
        handle = await charge.enqueue(order=1)
        with pytest.raises(JobDead):
            await handle.result(10)
    assert (await handle.record()).attempt == 3
    assert stripe.charges == [1, 1, 1]


async def test_what_is_not_named_is_charged(hf):
    class TooMany(Exception):
        status_code = 429

    async def refuse():
        raise TooMany("come later")

    guard = hf.guard("stripe", uncharged={Fault.TRANSIENT})

    @hf.task(name="charge", retry=FEW, guard=guard)
    async def charge() -> None:
        await guard.call(refuse)

    async with hf.worker():
        with pytest.raises(JobDead):
            await (await charge.enqueue()).result(10)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({Fault.PERMANENT}, "uncharged has no permanent fault"),
        ("throttled", "uncharged is a set of faults"),
        (3, "uncharged is a set of faults"),
    ],
)
def test_what_makes_no_sense_is_refused(hf, given, told):
    with pytest.raises(UsageError, match=told):
        hf.guard("stripe", uncharged=given)
