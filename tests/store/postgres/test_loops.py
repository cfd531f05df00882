"""A store on PostgreSQL is opened and closed again and again: on one event loop after the other, and given up half-way."""

from __future__ import annotations

import asyncio

import pytest
from kit import put
from waiting import heard, until

from holdfast.store.postgres.failures import Blocked
from holdfast.store.postgres.patience import Patience
from holdfast.store.postgres.pool import Pool
from holdfast.store.postgres.store import PostgresStore
from holdfast.testing.conformance.wakeups import listen

SOON = 10.0  # seconds: only a mistake takes so long


async def on_a_loop_of_its_own(work):
    return await asyncio.to_thread(lambda: asyncio.run(asyncio.wait_for(work(), SOON)))


async def turns(number=10):
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.fixture
async def closed(postgres_url):
    """A store that was never opened."""
    return PostgresStore(postgres_url)


async def test_listening_works_on_one_loop_after_the_other(closed, monkeypatch):
    probe = closed.wakeups._listener._probe

    async def probe_late():
        """So that the proof has to be waited for."""
        asyncio.get_running_loop().call_later(0.02, lambda: tasks.add(asyncio.ensure_future(probe())))

    async def hear_of_a_job():
        await closed.open()
        await listen(closed, "default")
        await until(lambda: proofs)
        await closed.close()

    async def prove(*given):
        await proving(*given)
        proofs.append(True)

    tasks, proofs, proving = set(), [], closed.wakeups._listener._prove
    monkeypatch.setattr(closed.wakeups._listener, "_probe", probe_late)
    monkeypatch.setattr(closed.wakeups._listener, "_prove", prove)
    with heard("task.failed") as failures:
        for _ in range(2):
            proofs.clear()
            await on_a_loop_of_its_own(hear_of_a_job)
    assert failures == []


def test_patience_works_on_one_loop_after_the_other():
    patience = Patience(1)

    async def two_at_once():
        tried = []

        async def attempt():
            await turns()
            tried.append(True)
            if len(tried) < 3:
                raise Blocked("by another")
            return True

        return await asyncio.gather(patience.wait(attempt), patience.wait(attempt))

    for _ in range(2):
        assert asyncio.run(two_at_once()) == [True, True]


async def test_a_loop_that_was_closed_with_the_store_open_is_forgotten(closed):
    async def begin():
        await closed.open()
        await put(closed)
        await closed.wakeups.wait(["other"], 0)
        closed.wakeups.hint(["default"])

    async def go_on():
        await closed.open()
        await asyncio.gather(*(put(closed) for _ in range(5)))
        closed.wakeups.hint(["default"])
        await closed.close()

    def and_close_the_loop():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(begin())
        loop.close()  # by hand: its tasks are neither cancelled nor done

    await asyncio.to_thread(and_close_the_loop)
    await on_a_loop_of_its_own(go_on)


@pytest.fixture
async def slow_to_close(store, monkeypatch):
    """A store whose close waits for what is set here."""
    gate, stop = asyncio.Event(), store.wakeups.stop

    async def wait_first():
        await gate.wait()
        await stop()

    monkeypatch.setattr(store.wakeups, "stop", wait_first)
    yield gate
    gate.set()


async def test_a_close_that_is_given_up_goes_on_and_the_next_open_waits_for_it(
    store, slow_to_close, monkeypatch
):
    order, stop = [], store.database.pool.stop

    async def stop_and_tell():
        await stop()
        order.append("closed")

    monkeypatch.setattr(store.database.pool, "stop", stop_and_tell)
    closing = asyncio.ensure_future(store.close())
    await turns()
    closing.cancel()
    await asyncio.wait([closing])
    opening = asyncio.ensure_future(store.open())
    opening.add_done_callback(lambda _: order.append("opened"))
    await turns()
    slow_to_close.set()
    await opening
    await turns()
    assert order == ["closed", "opened"]
    await put(store)
    await store.close()
    assert not store.database.pool.is_open


async def test_two_closes_wait_for_the_same_end(store, slow_to_close):
    both = [asyncio.ensure_future(store.close()) for _ in range(2)]
    await turns()
    assert store.database.pool.is_open
    assert not any(each.done() for each in both)
    slow_to_close.set()
    await asyncio.gather(*both)
    assert not store.database.pool.is_open


async def test_the_pool_is_stopped_also_when_wake_ups_cannot_be(store, monkeypatch):
    async def fail():
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(store.wakeups, "stop", fail)
        with pytest.raises(ZeroDivisionError):
            await store.close()
    assert not store.database.pool.is_open


class Fake:
    """What the pool asks of a connection."""

    gone = False

    def is_closed(self):
        return self.gone

    def terminate(self):
        self.gone = True

    async def close(self):
        self.gone = True


def test_what_comes_back_from_an_earlier_loop_is_closed_and_frees_no_place():
    async def connect():
        return Fake()

    async def borrow():
        pool.start()
        connection = await pool.acquire()
        await pool.stop()
        return connection

    async def give_back(old):
        pool.start()
        mine = await pool.acquire()
        pool.release(old)
        assert old.gone
        assert not pool.has_room
        pool.release(mine)
        assert await pool.acquire() is mine

    pool = Pool(connect, size=2, wait=1.0)
    asyncio.run(give_back(asyncio.run(borrow())))


async def _many(pool, number, *, urgent=False):
    return [await pool.acquire(urgent=urgent) for _ in range(number)]


async def test_one_that_is_soiled_is_not_kept_for_who_is_not_let_in():
    """The last place is for those in a hurry: who waits for another one does not get it, and would not clean it."""
    pool = Pool(_fake, size=3, wait=1.0)
    pool.start()
    [first, _] = await _many(pool, 2)
    [hurried] = await _many(pool, 1, urgent=True)
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    assert not pool.is_awaited
    pool.release(hurried)
    assert pool.is_awaited, "the next one is for him"
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    pool.release(first)


async def test_who_waited_takes_the_one_that_is_soiled():
    pool = Pool(_fake, size=4, wait=1.0)
    pool.start()
    [soiled, clean, _] = await _many(pool, 3)
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    assert pool.is_awaited
    pool.release(soiled, soiled=True)
    pool.release(clean)
    assert await waiting is soiled
    assert pool.cleans(soiled)
    assert not soiled.gone


async def _fake():
    return Fake()
