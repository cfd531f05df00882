"""The audit of the fault harness finds what is wrong: here it is planted, one thing for each column."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from chaos import recovery, settings
from chaos.audit import Audit
from chaos.elsewhere import Run
from chaos.journal import Journal
from chaos.place import place
from chaos.world import Injection
from holdfast.kernel.outcomes import Done
from holdfast.store.records import Finish
from holdfast.store.view_records import NewRow, ViewBatch


@pytest.fixture
async def where():
    async with place("sqlite", None) as made:
        Journal(settings.provider_journal(made.folder))
        yield made


@pytest.fixture
def caller(where):
    journal = Journal(settings.caller_journal(where.folder, "c1"))

    def say(item, said, *, kind="ship", bare=False, **facts):
        journal.write(item=item, kind=kind, bare=bare, said="asked")
        if said is not None:
            journal.write(item=item, kind=kind, bare=bare, said=said, **facts)

    return say


async def put(where, item, *, order=True, parcels=1):
    """A job that has succeeded, with its caller's row and its own; returns its id."""

    async def ship() -> None: ...

    task = where.hf._inside.registry.get("ship") or where.hf.task(name="ship")(ship)
    handle = await task.enqueue()
    [claim] = await where.hf.store.claims.claim({"default": 1}, lease=60, worker="w")
    async with where.hf.transaction() as tx:
        if order:
            await tx.execute("INSERT INTO orders (item) VALUES ($1)", item)
        for _ in range(parcels):
            await tx.execute("INSERT INTO parcels VALUES ($1, $2, $3)", item, handle.id, claim.token)
        await where.hf.store.claims.finish([Finish(claim, Done(None))], tx=tx)
    return handle.id


async def test_what_is_well_is_clean(where, caller):
    caller("a", "acknowledged", job=await put(where, "a"))
    caller("b", "rolled back")
    caller("c", None)
    found = await Audit(where).make()
    assert (found.acknowledged, found.done, found.unanswered) == (1, 1, 1)
    assert found.lost == found.doubled == found.ghosts == []


async def test_a_job_that_is_gone(where, caller):
    caller("a", "acknowledged", job="01a1e035-408b-70e7-94d9-9baead26abd3")
    assert (await Audit(where).make()).lost == [
        "a: its job is gone",
        "a: its row is gone",
        "a: never done",
    ]


async def test_an_effect_that_is_missing(where, caller):
    caller("a", "acknowledged", job=await put(where, "a", parcels=0))
    assert (await Audit(where).make()).lost == ["a: never done"]


async def test_a_commit_that_nobody_heard_of_must_be_done_as_well(where, caller):
    await put(where, "a", parcels=0)
    caller("a", "unknown")
    assert (await Audit(where).make()).lost == ["a: never done"]


async def test_effects_that_are_there_twice(where, caller):
    caller("a", "acknowledged", job=await put(where, "a", parcels=2))
    caller("b", "acknowledged", kind="publish", bare=True, job=await put(where, "b", order=False, parcels=0))
    provider = Journal(settings.provider_journal(where.folder))
    provider.write(name="b", manner="answer")
    provider.write(name="b", manner="answer")
    assert (await Audit(where).make()).doubled == ["a: done 2 times", "b: done 2 times"]


async def test_a_token_that_was_run_twice_and_a_tick_with_two_jobs(where, caller):
    caller("a", "acknowledged", job=await put(where, "a"))
    for _ in range(2):
        where.there.began("job", 7, "ship", "a", 1)
        async with where.hf.transaction() as tx:
            await tx.execute("INSERT INTO ticks VALUES ('12:00', 'job', 7)")
    assert (await Audit(where).make()).doubled == ["job: run 2 times with token 7", "tick 12:00: 2 times"]


@pytest.mark.parametrize("said", ["rolled back", "refused"])
async def test_ghosts(where, caller, said):
    caller("a", said)
    await put(where, "a")
    caller("b", said, bare=True)
    where.there.began("job", 7, "ship", "b", 1)
    where.there.began("job", 8, "ship", "c", 1)
    caller("d", "unknown")
    await put(where, "d", order=False)
    assert (await Audit(where).make()).ghosts == [
        f"a: {said}, and there it is",
        f"b: {said}, and there it is",
        "c: nobody asked for it",
        "d: its job is there without its row",
    ]


async def announced(
    where, item, *, parcels=1, heard=("item.placed", "item.packed"), versions=(1, 2), counted=None
):
    """An event that was emitted, packed and booked; returns its id."""
    where.hf.event("item.placed", unheard=True)
    async with where.hf.transaction() as tx:
        await tx.execute("INSERT INTO orders (item) VALUES ($1)", item)
        emitted = await where.hf.emit("item.placed", {"item": item}, key="shelf:1", tx=tx)
        for _ in range(parcels):
            await tx.execute("INSERT INTO parcels VALUES ($1, 'job', 1)", item)
        for place, (type_, version) in enumerate(zip(heard, versions, strict=True)):
            sql = "INSERT INTO heard VALUES ($1, $2, 'shelf:1', $3, 'job', $4)"
            await tx.execute(sql, item, type_, version, place)
    row = counted if counted is not None else Counter(heard)
    lease = await where.hf.store.leases.acquire("holdfast:view:shelves", owner="t", ttl=60)
    begun = await where.hf.store.views.begin("shelves", start=0)
    rows = [NewRow(key="shelf:1", data=msgspec.json.encode(row).decode(), position=1)]
    batch = ViewBatch(view="shelves", generation=begun.generation, after=0, upto=1, rows=rows)
    assert await where.hf.store.views.apply(lease, batch)
    return emitted.id


async def test_events_that_are_well(where, caller):
    caller("a", "acknowledged", kind="announce", job=await announced(where, "a"))
    found = await Audit(where).make()
    assert (found.acknowledged, found.done) == (1, 1)
    assert found.lost == found.doubled == found.ghosts == found.disorder == []


async def test_events_that_are_lost(where, caller):
    caller("a", "acknowledged", kind="announce", job="01a1e035-408b-70e7-94d9-9baead26abd3")
    caller(
        "b",
        "acknowledged",
        kind="announce",
        job=await announced(where, "b", heard=("item.placed",), versions=(1,)),
    )
    assert (await Audit(where).make()).lost == [
        "a: its event is gone",
        "a: its row is gone",
        "a: never done",
        "a: nobody heard item.packed",
        "a: nobody heard item.placed",
        "b: nobody heard item.packed",
    ]


async def test_events_that_are_heard_twice_and_in_disorder(where, caller):
    heard, versions = ("item.packed", "item.placed", "item.placed"), (2, 1, 1)
    job = await announced(where, "a", heard=heard, versions=versions, counted={"item.placed": 1})
    caller("a", "acknowledged", kind="announce", job=job)
    found = await Audit(where).make()
    assert found.doubled == ["a: item.placed was heard 2 times"]
    assert found.disorder == ["shelf:1: was heard out of order, [2, 1, 1]"]
    assert [line.partition(",")[0] for line in found.lost] == ["shelf:1: the view has {'item.placed': 1}"]
    assert (await Audit(where, replayed={"job"}).make()).disorder == []


def test_the_time_to_recover_counts_from_the_kill_to_the_next_run_of_the_job():
    runs = [
        Run("a", 1, "ship", "x", 10, 1.0, None, None),  # killed
        Run("a", 2, "ship", "x", 11, 9.0, 9.5, "done"),
        Run("b", 1, "ship", "y", 10, 1.0, 1.5, "done"),  # had ended before
        Run("c", 1, "ship", "z", 12, 1.0, None, None),  # of another process
        Run("c", 3, "ship", "z", 11, 4.0, 4.1, "done"),
    ]
    killed = Injection(5.0, 5.2, frozenset([10]))
    [found] = recovery.times(runs, [killed], from_the_end=False, decided={"a": 0.5, "b": 6.0})
    assert (found.seconds, found.told) == (4.0, "ship x, token 1 (killed), then 2")
    assert recovery.times(runs, [killed], from_the_end=False, decided={"a": 8.9}) == []
    found = recovery.times(runs, [Injection(3.0, 3.5)], from_the_end=True, decided={})
    assert [each.seconds for each in found] == [0.5, 0.5, 5.5]
