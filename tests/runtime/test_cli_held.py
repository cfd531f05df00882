"""What a waiting job waits for, and who has it: in the list, where one is shown, and in the record of a program."""

from __future__ import annotations

import asyncio

import pytest
from cli_kit import put, put_running
from waiting import until

from holdfast import Holdfast
from holdfast.kernel.outcomes import Snooze
from holdfast.store.held_records import HeldFor
from holdfast.store.records import Finish
from holdfast.store.states import State


async def test_a_job_that_waits_for_its_lock_names_the_job_that_has_it(hf):
    go = asyncio.Event()

    @hf.task(name="shop.ship", lock="one")
    async def ship() -> None:
        await go.wait()

    async with hf.worker() as service:
        first = await ship.enqueue()
        await until(lambda: service.worker.runs)
        second = await ship.enqueue()
        while (record := await hf.jobs.get(second.id)).state is not State.QUEUED or record.held is None:
            await asyncio.sleep(0.02)
        held = record.held_by
        assert (held.reason, held.name) == (HeldFor.LOCK, "one")
        assert (held.job.id, held.job.task, held.job.state) == (first.id, "shop.ship", State.RUNNING)
        go.set()
        await second.result(20)


async def wait_for_lock(store, owner):
    [job_id] = await put(store, task="report.build", queue="reports")
    [claim] = await store.claims.claim({"reports": 1}, lease=30, worker="w1")
    await store.leases.acquire("one", owner=owner, ttl=300)
    await store.claims.finish([Finish(claim, Snooze(after=60, reason="its lock is held", lock="one"))])
    return job_id


def test_the_list_is_short_and_one_job_is_shown_whole(shop, on_store):
    holder = on_store(put_running)
    waits = on_store(wait_for_lock, f"w1/{holder}/5")
    assert shop("jobs", "list", "--queue", "reports") == 0
    assert f"held: lock 'one', of job {holder[:13]} (mail.send, running for" in shop.out
    assert "its lock is held" not in shop.out
    assert shop("jobs", "show", waits) == 0
    [line] = [line for line in shop.out.splitlines() if line.startswith("held ")]
    assert line.startswith(f"held          lock 'one', of job {holder} (mail.send, running for")
    [listed] = shop.json("jobs", "list", "--queue", "reports")["jobs"]
    assert listed["held_by"]["reason"] == "lock"
    assert listed["held_by"]["job"]["id"] == holder
    assert shop.json("jobs", "show", waits)["job"]["held_by"] == listed["held_by"]


def test_a_lock_that_no_job_has(shop, on_store):
    on_store(wait_for_lock, "report:2026-11")
    shop("jobs", "list")
    assert "held: lock 'one', of report:2026-11" in shop.out


async def put_in_order(store):
    first, second = [(await put(store, ordered="o"))[0] for _ in range(2)]
    await store.holds.promote()
    return first, second


async def put_with_slots(store):
    return [
        (await put(store, concurrency="c", concurrency_limit=1))[0] for _ in range(2)
    ] and await store.holds.promote()


async def put_of_tenant(store):
    await put(store, 2, tenant="acme")
    await store.holds.promote(window=1)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (put_in_order, "held: order 'o', behind job "),
        (put_with_slots, "held: concurrency 'c', 1 of 1 taken, by job "),
        (put_of_tenant, "held: tenant 'acme', 1 of it are ready"),
    ],
)
def test_each_reason_names_what_it_is_about(shop, on_store, act, words):
    on_store(act)
    shop("jobs", "list")
    assert words in shop.out


def test_a_ready_job_in_a_paused_queue_says_so(shop, on_store):
    on_store(put)
    shop("queues", "pause", "mail")
    shop("jobs", "list")
    assert "held: queue 'mail' is paused, by ada@shop" in shop.out


def test_a_page_is_explained_by_two_reads(shop, on_store, kept):
    """However many jobs it has."""

    async def look():
        async with Holdfast(kept) as hf:
            await put(hf.store, 50, ordered="o")
            await hf.store.holds.promote()
            seen = []
            reader = hf.store if kept.startswith("sqlite") else hf.store.database
            read = reader.read
            reader.read = lambda call: seen.append(call) or read(call)
            found = await hf.store.holds.explained(await hf.store.jobs.find(limit=50))
            return len(seen), sum(each.held_by is not None for each in found)

    assert asyncio.run(look()) == (2, 49)  # one for the page, one for what holds it
