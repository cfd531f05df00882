"""The verbs of sync code do what their async forms do: alone, from threads, and beside a running loop; on a loop they are refused."""

import asyncio
import threading

import pytest

from holdfast import Holdfast, Reject
from holdfast.kernel.errors import LockHeld, LockLost, UsageError
from holdfast.store.states import State


@pytest.fixture
def program(url):
    """A program that nobody has opened, with one of everything."""
    hf = Holdfast(url)
    hf.event("thing.made", int, unheard=True)

    @hf.task(queue="q")
    def double(n: int) -> int:
        if n < 0:
            raise Reject("negative")
        return 2 * n

    @hf.saga("trip")
    async def trip(saga, n: int) -> int:
        return await saga.signal("go") + n

    @hf.view("things", on="thing.made")
    def things(row: int | None, event) -> int:
        return (row or 0) + event.data

    @hf.cached(fresh=60, stale=60, key="half:{n}", on="store")
    def half(n: int) -> int:
        return n // 2

    hf.double, hf.trip, hf.things, hf.half = double, trip, things, half
    yield hf
    hf.blocking.close()


def work_off(hf, until):
    """What the program does, done by a worker of another instance on the same database."""

    async def main():
        async with hf, hf.worker({"q": 4, "default": 4}):
            await until()

    hf.blocking.close()
    asyncio.run(main())


def use_everything(hf):
    """Each verb once, and what it answers."""
    blocking = hf.blocking
    first, second = hf.double.enqueue_many_sync([{"n": 1}, hf.double.bind(-1)])
    [third] = blocking.enqueue_many(hf.double, [{"n": 3}])
    assert first.status_sync() == State.QUEUED
    assert third.record_sync().args == '{"n":3}'
    assert third.cancel_sync() == State.CANCELLED
    assert blocking.jobs.get(first.id).task == hf.double.name
    assert blocking.jobs.handle(first.id).status_sync() == State.QUEUED
    with pytest.raises(TimeoutError):
        first.result_sync(timeout=0.01)
    blocking.queues.pause("mail")
    assert [each.queue for each in blocking.queues.paused()] == ["mail"]
    blocking.queues.resume("mail")
    blocking.tenants.pause("acme", reason="no money")
    assert [each.reason for each in blocking.tenants.paused()] == ["no money"]
    blocking.tenants.resume("acme")
    assert sum(each.number for each in blocking.queues.count()) == 2
    assert blocking.workers.list() == []
    assert (blocking.dead.find(), blocking.unknown.find()) == ([], [])
    emitted = blocking.emit("thing.made", 4, key="a")
    assert blocking.outbox.get(emitted.id).key == "a"
    assert blocking.versions.current("a") == hf.versions.current_sync("a") == 1
    run = hf.trip.start_sync(5, id="trip:1")
    run.signal_sync("go", 2)
    assert blocking.sagas.get("trip:1").state == run.status_sync()
    assert hf.half.call_sync(9) == hf.half.refresh_sync(9) == 4
    assert blocking.cache.invalidate("half:9")
    assert hf.things.get_sync("a") is None
    assert hf.things.find_sync() == []
    with blocking.lock("report", lease=5) as lease:
        assert lease.token
        with pytest.raises(LockHeld), blocking.lock("report"):
            pass
    with blocking.transaction() as tx:
        hf.double.options(tx=tx).enqueue_many_sync([{"n": 7}])
        blocking.emit("thing.made", 1, key="a", tx=tx)
        hf.trip.start_sync(1, id="trip:2", tx=tx)
        blocking.versions.expect("a", 2, tx=tx)
        assert blocking.jobs.move(first.id, delay=0, tx=tx) == State.QUEUED
        assert blocking.jobs.cancel(third.id, "again", running=False, tx=tx) == State.CANCELLED
        assert third.cancel_sync("again", tx=tx) == State.CANCELLED
        assert blocking.unknown.resolve(first.id, actor="ada", done=False, tx=tx).outcome == "not_unknown"
        assert blocking.dead.replay([first.id], actor="ada", tx=tx)[0].outcome == "not_dead"
        assert blocking.dead.discard([first.id], actor="ada", reason="no", tx=tx) == [False]
    assert blocking.migrate() == []
    return first, second, run


def test_without_a_loop_and_then_its_results(program):
    hf = program
    first, second, run = use_everything(hf)

    async def all_done():
        async with asyncio.timeout(20):
            assert await first.result() == 2
            assert await run.result() == 7
            while await second.status() != State.DEAD or await hf.things.get("a") != 5:
                await asyncio.sleep(0.05)

    work_off(hf, all_done)
    assert first.result_sync(timeout=5) == hf.blocking.result(first) == 2
    assert run.result_sync(timeout=5) == 7
    assert hf.things.get_sync("a") == 5
    assert [entry.row for entry in hf.things.find_sync()] == [5]
    assert [each.id for each in hf.blocking.dead.find()] == [second.id]
    hf.blocking.dead.replay([second.id], actor="ada")
    assert second.status_sync() == State.QUEUED


async def test_from_a_thread_beside_the_loop_that_has_opened_it(program):
    async with program:
        await asyncio.to_thread(use_everything, program)


def test_from_many_threads_at_once(program):
    failed = []

    def use(number):
        try:
            [handle] = program.double.enqueue_many_sync([{"n": number}])
            assert handle.status_sync() == State.QUEUED
            assert program.blocking.jobs.get(handle.id) is not None
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert not failed


REFUSALS = {
    "await task.enqueue_many(…)": lambda hf: hf.double.enqueue_many_sync([{"n": 1}]),
    "await task.enqueue(…)": lambda hf: hf.double.enqueue_sync(1),
    "await hf.jobs.get(…)": lambda hf: hf.blocking.jobs.get("x"),
    "await hf.queues.pause(…)": lambda hf: hf.blocking.queues.pause("q"),
    "await hf.dead.replay(…)": lambda hf: hf.blocking.dead.replay([], actor="ada"),
    "await hf.migrate(…)": lambda hf: hf.blocking.migrate(),
    "await hf.emit(…)": lambda hf: hf.emit_sync("thing.made", 1),
    "await hf.versions.current(…)": lambda hf: hf.versions.current_sync("a"),
    "async with hf.transaction() as tx": lambda hf: hf.blocking.transaction().__enter__(),
    "async with hf.lock('x') as lease": lambda hf: hf.blocking.lock("x").__enter__(),
    "await saga.start(…)": lambda hf: hf.trip.start_sync(1),
    "await view.get(…)": lambda hf: hf.things.get_sync("a"),
    "await handle.result(…)": lambda hf: hf.blocking.jobs.handle("x").result_sync(),
    "await run.signal(…)": lambda hf: hf.trip.run("x").signal_sync("go"),
}


@pytest.mark.parametrize("form", REFUSALS)
async def test_on_a_loop_it_names_the_async_form(program, form):
    with pytest.raises(UsageError, match="would stand still") as refused:
        REFUSALS[form](program)
    assert f"Use `{form}` here." in str(refused.value)


def test_a_thread_whose_lock_is_lost_hears_of_it_at_the_end(program, url):
    table = "holdfast_lease" if "sqlite" in url else "holdfast.lease"
    with pytest.raises(LockLost), program.blocking.lock("report", lease=0.3) as lease:
        with program.blocking.transaction() as tx:
            tx.execute(f"UPDATE {table} SET token = token + 1 WHERE name = $1", lease.name)
        threading.Event().wait(1)
