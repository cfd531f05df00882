"""PostgreSQL itself: killed, read-only, held up by others. Rows 18, 24 and 28 to 30."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

import asyncpg
import pytest
from faultkit import Fleet, on_postgres
from waiting import until

from holdfast import Event, Holdfast
from holdfast.kernel.errors import HoldfastError, StoreReadOnly
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Done
from holdfast.store.event_records import Delivery, NewStray
from holdfast.store.records import Finish, NewJob
from holdfast.store.states import State
from holdfast.testing import drain
from holdfast.views.projector import Term
from tools.postgres import PostgresServer, system_binaries, wheel_binaries

SHIP = """
@hf.task(name="ship", retry=Backoff(attempts=50, first=0.05, ceiling=0.5))
async def ship(job: Job) -> None:
    mark("began", job=job.id)
    async with job.commit() as tx:
        await effect(tx, job)

@hf.task(name="hold", retry=QUICK)
async def hold(job: Job) -> None:
    async with hf.transaction() as tx:
        mark("began", job=job.id)
        await tx.fetch("SELECT pg_sleep(3.5)")

@hf.task(name="cross", retry=QUICK)
async def cross(job: Job, first: str, second: str) -> None:
    async with job.commit() as tx:
        await tx.execute("UPDATE effects SET token = token + 1 WHERE kind = $1", first)
        mark("half", job=job.id)
        await gate("go")
        await tx.execute("UPDATE effects SET token = token + 1 WHERE kind = $1", second)
"""

BILL = """
hf.event("order.placed")

@hf.on("order.*", group="billing", retry=QUICK)
async def bill(event: Event, tx: Tx) -> None:
    sql = "INSERT INTO effects (job, token, kind) VALUES ($1, $2, $3)"
    await tx.execute(sql, event.id, event.version or 0, event.key or "")
    mark("handled", event=event.id)
"""


@pytest.fixture(scope="module")
def server():
    """A server of our own: what is done to it must not reach the other tests."""
    server = PostgresServer.start(wheel_binaries() or system_binaries()[-1])
    yield server
    server.stop()


@pytest.fixture
async def shaky(server, tmp_path):
    """A fleet on it."""
    url = server.url(server.create_database())
    await Holdfast(url).migrate()
    async with Holdfast(url) as hf:
        fleet = Fleet(hf, url, tmp_path)
        await fleet.prepare()
        yield fleet
        fleet.end_all()


async def test_the_postmaster_is_killed(server, shaky):
    """Row 18: workers come back by themselves; what was acknowledged is there, and its rows are there once."""
    shaky.program(SHIP)
    await shaky.started("-c", "5", lease=4)
    jobs = await shaky.put_many("ship", 100)
    await shaky.marked("began", 20)
    server.kill()
    await asyncio.to_thread(server.start_again)
    assert {(await shaky.record(job)).id for job in jobs} == set(jobs)
    await shaky.all_become(jobs)
    assert sorted(job for job, _ in await shaky.effects()) == sorted(jobs)


async def test_the_postmaster_is_killed_while_events_stream(server, shaky, valkey):
    """That events were published, and that jobs are ready, is not waited for: what it forgets of that is done again, and no more."""
    shaky.program(BILL)
    shaky.hf.event("order.placed", unheard=True)
    transport = {"HOLDFAST_TRANSPORT_URL": f"{valkey.url}?topic=killed-postmaster"}
    for _ in range(2):
        await shaky.started(lease=4, **transport)
    ids: list[str] = []
    for round_ in range(1, 4):
        ids += [(await shaky.hf.emit("order.placed", key=f"k{n % 5}")).id for n in range(40)]
        await shaky.marked("handled", 40 * round_ - 25)
        server.kill()
        await asyncio.to_thread(server.start_again)

    async def all_are_handled():
        return set(ids) <= {event for event, _ in await shaky.effects()}

    await until(all_are_handled, 60)
    assert sorted(event for event, _ in await shaky.effects()) == sorted(ids)
    log = await shaky.hf.store.outbox.log()
    assert [event.position for event in log] == list(range(1, len(ids) + 1))


@pytest.fixture(scope="module")
def lazy_server():
    """One that writes its log only when somebody waits for that, as any does for a moment."""
    server = PostgresServer.start(wheel_binaries() or system_binaries()[-1], {"wal_writer_delay": "10s"})
    yield server
    server.stop()


@pytest.fixture
async def lazy(lazy_server):
    url = lazy_server.url(lazy_server.create_database())
    await Holdfast(url).migrate()
    async with Holdfast(url) as hf:
        yield hf


async def crash(server):
    server.kill()
    await asyncio.to_thread(server.start_again)


async def _emitted(hf):
    hf.event("order.placed", unheard=True)
    emitted = await hf.emit("order.placed", key="k")
    return lambda: _is_there(hf.outbox.get(emitted.id))


async def _emitted_with_rows(hf):
    hf.event("order.placed", unheard=True)
    async with hf.transaction() as tx:
        emitted = await hf.emit("order.placed", key="k", tx=tx)
    return lambda: _is_there(hf.outbox.get(emitted.id))


async def _enqueued(hf):
    job = NewJob(id=new_id(), task="t")
    await hf.store.jobs.enqueue([job])
    return lambda: _is_there(hf.jobs.get(job.id))


async def _claimed(hf):
    """The next one must not have its token: what the first does with it would count."""
    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="t")])
    [claim] = await hf.store.claims.claim({"default": 1}, lease=30, worker="w1")

    async def is_kept():
        await hf.store.jobs.enqueue([NewJob(id=new_id(), task="t")])
        [later] = await hf.store.claims.claim({"default": 1}, lease=30, worker="w2")
        return later.token > claim.token

    return is_kept


async def _finished(hf):
    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="t")])
    [claim] = await hf.store.claims.claim({"default": 1}, lease=30, worker="w1")
    assert await hf.store.claims.finish([Finish(claim, Done())]) == [True]

    async def is_kept():
        return (await hf.jobs.get(claim.job_id)).state is State.SUCCEEDED

    return is_kept


async def _promoted_and_claimed(hf):
    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="t", ordered="k")])
    await hf.store.holds.promote()
    [claim] = await hf.store.claims.claim({"default": 1}, lease=30, worker="w1")

    async def is_kept():
        return await hf.store.claims.finish([Finish(claim, Done())]) == [True]

    return is_kept


async def _delivered(hf):
    """The broker forgets the message then."""
    made = Delivery(new_id(), NewJob(id=new_id(), task="t", ordered="k"))
    assert await hf.store.inbox.deliver("billing", [made]) == [True]
    return lambda: _is_there(hf.jobs.get(made.job.id))


async def _set_aside(hf):
    """A message that nobody understood: the broker forgets it too."""
    [stray] = await hf.store.strays.keep("redis", "billing", [NewStray(b"{", "no JSON")])
    return lambda: _is_there(hf.store.strays.get(stray))


async def _is_there(asked):
    return await asked is not None


ACKNOWLEDGED = [
    _emitted, _emitted_with_rows, _enqueued, _claimed, _finished, _promoted_and_claimed, _delivered, _set_aside
]  # fmt: skip


@pytest.mark.parametrize("act", ACKNOWLEDGED, ids=lambda act: act.__name__.strip("_"))
async def test_what_was_acknowledged_is_kept(lazy_server, lazy, act):
    """The server is killed the moment after its answer. What it may forget is in the next test."""
    is_kept = await act(lazy)
    await crash(lazy_server)
    assert await is_kept()


@pytest.mark.parametrize("reader", ["group", "view"])
async def test_the_postmaster_is_killed_between_reading_and_storing(lazy_server, lazy, reader):
    """A reader goes on with what it has read, and the server has forgotten the numbers of that: others have them now."""
    hf = lazy
    hf.event("order.placed", unheard=reader == "view")
    handled: list[str] = []

    async def bill(event: Event) -> None:
        handled.append(event.id)

    if reader == "group":
        hf.on("order.*", group="billing")(bill)
    orders = hf.view("orders", on="order.*", key=lambda _: "all")(lambda row, event: [*(row or []), event.id])
    turn = await _turn_of(hf, reader)
    relay = await hf.store.leases.acquire("holdfast:relay", owner="t", ttl=60)
    async with hf.transaction() as tx:
        late = await hf.emit("order.placed", tx=tx)
        early = await asyncio.create_task(hf.emit("order.placed"))  # of somebody else
        [waits] = await hf.store.outbox.waiting(relay, limit=5)
    assert waits.id == early.id
    assert await hf.store.outbox.stamp(relay, [early.id]) == [1]
    subject, verb = (hf.store.inbox, "read") if reader == "group" else (hf.store.outbox, "log")
    read = getattr(subject, verb)

    async def log(*args, **options):
        found = await read(*args, **options)
        events = found[0] if reader == "group" else found
        if events and events[-1].id == early.id:
            await crash(lazy_server)
        return found

    setattr(subject, verb, log)
    with suppress(HoldfastError):
        await turn()
    setattr(subject, verb, read)
    assert (await hf.store.outbox.lag()).waiting == 2, "the number was forgotten"
    assert await hf.store.outbox.stamp(relay, [late.id, early.id]) == [1, 2]
    turn = await _turn_of(hf, reader)
    while await turn():
        pass
    await drain(hf)
    if reader == "view":
        handled = await orders.get("all")
    assert sorted(handled) == sorted([late.id, early.id])


async def _turn_of(hf, reader):
    """One turn of who reads events. It has begun: nothing is stored before it has read."""
    if reader == "group":
        lease = await hf.store.leases.acquire("holdfast:group:billing", owner="t", ttl=60)
        consumer = hf._inside.bus.consumer(hf._inside.bus.groups[0], "t")
        await consumer.subscribe()
        return partial(consumer.turn, lease)
    lease = await hf.store.leases.acquire("holdfast:view:orders", owner="t", ttl=60)
    term = Term(hf.store, hf.views.projector(next(iter(hf.views)), "t")._projection, lease)
    await term.turn()
    return term.turn


async def test_a_failover_to_read_only(server, shaky):
    """Row 24: writes are refused as what they are, claims stop, reads go on; when writes are back, so is all."""
    shaky.program(SHIP)
    worker = await shaky.started()
    await shaky.becomes(await shaky.put("ship"))
    await _read_only(server, shaky, "on")
    with pytest.raises(StoreReadOnly):
        await shaky.put("ship")
    assert await shaky.hf.queues.count() == []
    await worker.says("accepts no writes now")
    await _read_only(server, shaky, "off")

    async def accepted():
        try:
            return await shaky.put("ship")
        except HoldfastError:
            return None

    done = await shaky.becomes(await until(accepted))
    assert (done.attempt, done.interruptions) == (1, 0)


async def _read_only(server, fleet, setting):
    await server.set_read_only(setting)

    async def is_known():  # to each of our own sessions: the server tells them one after the other
        ours = list(fleet.hf.store.database.pool._idle)
        return {await each.fetchval("SHOW default_transaction_read_only") for each in ours} <= {setting}

    await until(is_known)


@on_postgres
async def test_a_forgotten_snapshot(fleet):
    """Row 28: a session that stays in a transaction keeps dead rows alive; later batches are not much slower."""
    fleet.program("@hf.task(name='noop')\nasync def noop() -> None: ...")
    idle = await asyncpg.connect(fleet.url)
    await idle.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM holdfast.job")
    await fleet.started("-c", "50")
    seconds = []
    for _ in range(5):
        began = asyncio.get_running_loop().time()
        await fleet.put_many("noop", 1000)
        await until(lambda: _none_left(fleet), 30)
        seconds.append(asyncio.get_running_loop().time() - began)
    await idle.close()
    assert seconds[-1] < 4 * min(seconds[:2]) + 1, seconds


async def _none_left(fleet):
    return await fleet.hf.queues.count() == []


@on_postgres
async def test_a_deadlock(fleet):
    """Row 29: of two transactions that wait for each other one is rolled back whole, and its job runs again."""
    fleet.program(SHIP)
    async with fleet.hf.transaction() as tx:
        await tx.execute("INSERT INTO effects VALUES ('', 0, 'a'), ('', 0, 'b')")
    await fleet.started("-c", "2")
    jobs = [await fleet.put("cross", first="a", second="b"), await fleet.put("cross", first="b", second="a")]
    await fleet.marked("half", 2)
    fleet.open("go")
    records = await fleet.all_become(jobs)
    assert sorted(record.attempt for record in records) == [1, 2]
    assert "deadlock" in max(records, key=lambda record: record.attempt).errors[0].error
    assert [token for _, token in await fleet.effects()] == [2, 2]


@on_postgres
async def test_an_exhausted_pool(fleet):
    """Row 30: tasks hold all connections longer than the lease; renewals have their own, and nothing runs twice."""
    fleet.program(SHIP)
    await fleet.started("-c", "6", url=f"{fleet.url}?pool_size=3")
    await fleet.started("-c", "6")  # it would take what seems to be lost
    jobs = await fleet.put_many("hold", 4)
    for record in await fleet.all_become(jobs):
        assert (record.attempt, record.interruptions) == (1, 0)
