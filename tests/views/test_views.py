"""Views on a store: rows follow events, generations change places, and nothing goes back."""

from __future__ import annotations

import asyncio

import pytest
from viewkit import Bench
from waiting import heard, until

from holdfast.kernel.errors import UsageError, ViewBehind
from holdfast.runtime.config import locate, open_store


def total(row, event):
    return {"sum": (row or {"sum": 0})["sum"] + event.data["n"]}


def latest(row, event):
    return None if event.type == "order.deleted" else event.data


async def test_rows_follow_events(bench):
    view = bench.view(total)
    await bench.run(view)
    for number in (1, 2, 3):
        await bench.publish(key="order:1", n=number)
    await bench.publish(key="order:2", n=10)
    await bench.drained(view)
    assert await bench.rows(view) == {"order:1": {"sum": 6}, "order:2": {"sum": 10}}
    entry = await view.entry("order:1")
    assert (entry.version, entry.position, entry.key) == (3, 3, "order:1")
    assert await view.get("order:3") is None


async def test_a_row_is_deleted_and_comes_back(bench):
    view = bench.view(latest)
    await bench.run(view)
    await bench.publish(key="order:1", n=1)
    await bench.publish("order.deleted", key="order:1")
    await bench.drained(view)
    assert await bench.rows(view) == {}
    assert await view.get("order:1") is None
    await bench.publish(key="order:1", n=2)
    await bench.drained(view)
    assert await bench.rows(view) == {"order:1": {"n": 2}}


async def test_what_was_published_before_it_ran_is_read_in_batches(bench):
    await bench.publish_many(1200, key="order:1")
    view = bench.view(total)
    with heard("view.applied") as batches:
        await bench.built(view)
    assert await bench.rows(view) == {"order:1": {"sum": sum(range(1200))}}
    assert [each["position"] for each in batches] == [500, 1000, 1200]


async def test_views_do_not_know_each_other(bench):
    one, two = bench.view(total, "one"), bench.view(latest, "two", on="ship.*")
    await bench.publish(key="order:1", n=1)
    await bench.publish("ship.sent", key="ship:1", n=2)
    await bench.built(one)
    await bench.built(two)
    assert (await bench.rows(one), await bench.rows(two)) == ({"order:1": {"sum": 1}}, {"ship:1": {"n": 2}})


async def test_one_of_many_projectors_runs_it_and_another_takes_over(bench):
    view = bench.view(total)
    first, *_ = [await bench.run(view, owner=f"w{number}", ttl=0.5) for number in range(3)]
    await bench.publish(key="a", n=1)
    await bench.drained(view)
    await bench.stop(first)
    await bench.publish(key="a", n=2)
    await bench.drained(view)
    assert await bench.rows(view) == {"a": {"sum": 3}}


@pytest.mark.parametrize("key", [None, True, 1.5, b"a"])
async def test_what_is_no_key_is_refused(bench, key):
    with pytest.raises(UsageError, match="text or a whole number, not"):
        await bench.view(total).get(key)


async def test_find_goes_by_pages(bench):
    view = bench.view(latest)
    for number in range(5):
        await bench.publish(key=f"order:{number}", n=number)
    await bench.publish(key="other", n=9)
    await bench.built(view)
    page = await view.find(prefix="order:", limit=3)
    assert [entry.key for entry in page] == ["order:0", "order:1", "order:2"]
    rest = await view.find(prefix="order:", after=page[-1].key)
    assert [(entry.key, entry.row) for entry in rest] == [("order:3", {"n": 3}), ("order:4", {"n": 4})]


# --- reading one's own writes ---


async def test_what_was_emitted_is_seen_after_a_wait(bench):
    view = bench.view(latest)
    await bench.run(view)
    emitted = await bench.emit(key="order:1", n=1)
    seen = asyncio.create_task(view.get("order:1", at_least=emitted, wait=30))
    await bench.relay()
    assert await seen == {"n": 1}
    assert await view.get("order:1", at_least=emitted.version) == {"n": 1}
    assert await view.get("order:1", at_least=emitted, wait=0) == {"n": 1}


async def test_who_waits_in_another_process_is_woken_when_the_view_goes_on(bench, url, monkeypatch):
    monkeypatch.setattr("holdfast.views.view._LOOK", 60.0)
    await bench.run(bench.view(total))
    far = Bench(open_store(locate(url)))
    await far.store.open()
    for number in range(1, 6):
        emitted = await bench.emit(key="order:1", n=1)
        waits = asyncio.create_task(far.view(total).get("order:1", at_least=emitted, wait=10))
        await asyncio.sleep(0.05)
        await bench.relay()
        async with asyncio.timeout(5):
            assert await waits == {"sum": number}
    await far.store.close()


async def test_an_event_that_a_view_ignores_is_seen_as_well(bench):
    view = bench.view(latest)
    await bench.run(view)
    emitted = await bench.publish("ship.sent", key="order:1")
    assert await view.get("order:1", at_least=emitted, wait=30) is None


@pytest.mark.parametrize("wait", [0, 0.1])
async def test_a_view_that_is_behind_says_so_and_shows_what_it_has(bench, wait):
    view = bench.view(latest)
    await bench.publish(key="order:1", n=1)
    await bench.built(view)
    emitted = await bench.publish(key="order:1", n=2)
    with pytest.raises(ViewBehind, match="1 events behind") as behind:
        await view.get("order:1", at_least=emitted, wait=wait)
    assert behind.value.row == {"n": 1}
    with pytest.raises(ViewBehind, match="version 1"):
        await view.get("order:1", at_least=2, wait=wait)
    unpublished = await bench.emit(key="order:1", n=3)
    with pytest.raises(ViewBehind, match="not published"):
        await view.get("order:1", at_least=unpublished, wait=wait)


async def test_an_event_that_a_handler_was_given_is_seen_also_when_it_was_pruned(bench):
    """Such as one that is replayed after weeks as a dead letter."""
    given = []
    view = bench.view(lambda row, event: given.append(event) or event.data)
    await bench.publish(key="a", n=1)
    await bench.publish(key="a", n=2)
    with pytest.raises(ViewBehind):
        await view.get("a", at_least=1, wait=0)
    await bench.built(view)
    await _forget_events(bench, upto=2)
    assert await view.get("a", at_least=given[0], wait=0) == {"n": 2}
    with pytest.raises(ViewBehind, match="nobody runs it"):
        await bench.view(total, "other").get("a", at_least=given[0], wait=0)


@pytest.mark.parametrize("is_pruned", [False, True])
@pytest.mark.parametrize("key", ["key", "order"])
async def test_a_version_that_a_view_does_not_hear_is_reached_as_well(bench, key, is_pruned):
    """The newest event of a key is not always one that the view hears."""
    view = bench.view(latest, key=key)
    row = "a" if key == "key" else "1"
    await bench.publish(key="a", order="1", n=1)
    await bench.publish("ship.sent", key="a")
    with pytest.raises(ViewBehind, match="there is no such row"):
        await view.get(row, at_least=2, wait=0)
    await bench.built(view)
    if is_pruned:
        await _forget_events(bench, upto=2)
    assert await view.get(row, at_least=2, wait=0) == {"n": 1, "order": "1"}
    with pytest.raises(ViewBehind, match="its row has version 1, and there is no such version yet"):
        await view.get(row, at_least=3, wait=0)
    await bench.emit("ship.sent", key="a")
    with pytest.raises(ViewBehind, match="its row has version 1, and the event is not published yet"):
        await view.get(row, at_least=3, wait=0)
    await bench.relay()
    with pytest.raises(ViewBehind, match="its row has version 1, and it is 1 events behind"):
        await view.get(row, at_least=3, wait=0)


async def test_a_version_of_a_key_that_a_view_has_no_row_of_is_reached(bench):
    view = bench.view(latest)
    for _ in range(15):
        await bench.emit("ship.sent", key="a")
    await bench.relay()
    await bench.built(view)
    assert await view.get("a", at_least=2, wait=0) is None
    assert await view.get("a", at_least=15, wait=0) is None
    with pytest.raises(ViewBehind, match="no such version"):
        await view.get("a", at_least=16, wait=0)


async def test_a_version_that_is_set_aside_is_not_reached(bench):
    def picky(row, event):
        if event.data["n"] == 2:
            raise ValueError("no")
        return event.data

    view = bench.view(picky)
    await bench.publish(key="a", n=1)
    await bench.publish(key="a", n=2)
    await bench.built(view)
    with pytest.raises(ViewBehind, match="set aside: ValueError: no"):
        await view.get("a", at_least=2, wait=0)


async def test_a_view_that_nobody_runs_is_behind(bench):
    view = bench.view(latest)
    emitted = await bench.publish(key="order:1")
    with pytest.raises(ViewBehind, match="nobody runs it"):
        await view.get("order:1", at_least=emitted, wait=0)
    assert await view.get("order:1") is None
    assert await view.lag() is None
    assert await view.get("order:1", at_least=0, wait=0) is None


async def test_a_row_of_several_keys_has_no_version_to_wait_for(bench):
    view = bench.view(total, key=lambda event: "all")
    await bench.publish(key="a", n=1)
    emitted = await bench.publish(key="b", n=2)
    await bench.built(view)
    with pytest.raises(UsageError, match="several keys"):
        await view.get("all", at_least=1)
    assert await view.get("all", at_least=emitted, wait=0) == {"sum": 3}
    assert (await view.entry("all")).position == 2


async def test_its_lag_is_told_while_it_is_behind(bench, monkeypatch):
    monkeypatch.setattr("holdfast.views.projector._TOLD", 0.0)
    monkeypatch.setattr("holdfast.views.projector.BATCH", 2)
    await bench.publish_many(6, key="a")
    with heard("view.lag") as notes:
        await bench.built(bench.view(total))
    assert [each["events"] for each in notes][:2] == [4, 2]


# --- what cannot be taken ---


async def test_a_poison_event_holds_its_row_alone_and_is_taken_when_the_code_is_better(bench):
    view = bench.view(lambda row, event: total(row, event) if event.data["n"] else 1 / 0)
    projector = await bench.run(view)
    for number in (1, 0, 2):
        await bench.publish(key="a", n=number)
    poison = await bench.publish(key="b", n=5)
    await bench.drained(view)
    assert await bench.rows(view) == {"a": {"sum": 1}, "b": {"sum": 5}}
    assert [each.position for each in await view.aside()] == [2, 3]
    assert "ZeroDivisionError" in (await view.aside())[0].error
    assert (await view.lag()).aside == 2
    await until(lambda: "set aside" in (projector.trouble() or ""))
    with pytest.raises(ViewBehind, match="is set aside"):
        await view.get("a", at_least=poison, wait=0)
    assert await view.get("b", at_least=poison, wait=0) == {"sum": 5}
    await bench.stop(projector)

    better = bench.view(total)
    projector = await bench.run(better)

    async def healed():
        return await bench.rows(better) == {"a": {"sum": 3}, "b": {"sum": 5}}

    await until(healed)
    assert await better.aside() == []
    await until(lambda: projector.trouble() is None)


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), RecursionError()])
@pytest.mark.parametrize("where", ["row", "key"])
async def test_whatever_a_projection_raises_holds_its_row_alone(bench, error, where):
    def poison(event):
        if event.data["n"] == 2:
            raise error
        return event.data["k"]

    view = bench.view(
        lambda row, event: [event.data, where == "row" and poison(event)][0],
        key=poison if where == "key" else "k",
    )
    await bench.run(view)
    await bench.publish(k="a", n=2)
    await bench.publish(k="b", n=1)
    await bench.drained(view)
    assert await bench.rows(view) == {"b": {"k": "b", "n": 1}}
    [aside] = await view.aside()
    assert type(error).__name__ in aside.error


async def test_a_view_that_stops_at_what_it_cannot_take(bench):
    view = bench.view(lambda row, event: total(row, event) if event.data["n"] else 1 / 0, on_error="stop")
    projector = await bench.run(view)
    for number in (1, 0):
        await bench.publish(key="a", n=number)
    await bench.publish(key="b", n=5)
    await until(lambda: "stands still before position 2" in (projector.trouble() or ""))
    assert "ZeroDivisionError: division by zero" in projector.trouble()
    assert await bench.rows(view) == {"a": {"sum": 1}}
    assert (await view.lag()).events == 2
    await bench.stop(projector)
    better = bench.view(total)
    await bench.built(better)
    assert await bench.rows(better) == {"a": {"sum": 1}, "b": {"sum": 5}}


async def test_with_too_many_set_aside_it_stands_still(bench, monkeypatch):
    monkeypatch.setattr("holdfast.views.projector.ASIDE_LIMIT", 2)
    view = bench.view(lambda row, event: 1 / 0)
    projector = await bench.run(view)
    await bench.publish_many(3, key="a")
    await bench.drained(view)
    await bench.publish(key="a")
    await until(lambda: "stands still: more than 2" in (projector.trouble() or ""))
    assert (await view.lag()).events == 1


async def test_all_that_is_set_aside_is_taken_by_better_code_however_much_it_is(bench, monkeypatch):
    """One try takes the first of them: it is not done with the rest."""
    monkeypatch.setattr("holdfast.views.projector.ASIDE_LIMIT", 2)
    await bench.publish_many(7)
    await bench.built(bench.view(lambda row, event: 1 / 0, key="n"))
    better = bench.view(lambda row, event: event.data, key="n")
    projector = await bench.run(better)

    async def taken():
        return not await better.aside()

    await until(taken)
    assert await bench.rows(better) == {str(n): {"n": n} for n in range(7)}
    assert projector.trouble() is None


# --- building anew ---


async def test_a_rebuild_changes_places_when_it_is_as_far(bench):
    view = bench.view(total)
    await bench.publish_many(3, key="a")
    await bench.built(view)
    double = bench.view(lambda row, event: {"sum": total(row, event)["sum"] + event.data["n"]})
    begun = await double.rebuild()
    assert (begun.generation, begun.state) == (2, "building")
    assert await bench.rows(double) == {"a": {"sum": 3}}
    with heard("view.switched") as switched:
        projector = await bench.run(double)
        await until(lambda: switched)
    await bench.publish(key="a", n=0)
    await bench.drained(double)
    rows = await bench.rows(double)
    await bench.stop(projector)
    assert rows == {"a": {"sum": 6}}
    [checkpoint] = await bench.store.views.checkpoints()
    assert (checkpoint.generation, checkpoint.state) == (2, "serving")


async def test_after_all_is_read_a_view_is_what_a_rebuild_makes(bench):
    view = bench.view(total)
    projector = await bench.run(view)
    for number in range(20):
        await bench.publish(key=f"k{number % 3}", n=number)
        if number % 7 == 0:
            await bench.stop(projector)
            projector = await bench.run(view)
    await bench.drained(view)
    before = await bench.rows(view)
    await view.rebuild()
    await bench.drained(view)
    assert await bench.rows(view) == before
    assert (await view.lag()).generation == 2


async def test_a_rebuild_that_would_know_less_is_refused(bench):
    view = bench.view(total)
    await bench.publish_many(4, key="a")
    await bench.built(view)
    await _forget_events(bench, upto=2)
    with pytest.raises(UsageError, match="pruned since"):
        await view.rebuild()
    assert (await view.rebuild(partial=True)).start == 2
    await bench.built(view)
    assert await bench.rows(view) == {"a": {"sum": 5}}
    await view.rebuild()  # it knows as much as this one
    with pytest.raises(UsageError, match="no worker has run it"):
        await bench.view(total, "unknown").rebuild()


async def test_a_view_that_is_new_begins_with_what_is_kept(bench):
    await bench.publish_many(4, key="a")
    await _forget_events(bench, upto=2)
    view = bench.view(total)
    await bench.built(view)
    assert await bench.rows(view) == {"a": {"sum": 5}}
    [checkpoint] = await bench.store.views.checkpoints()
    assert checkpoint.start == 2
    await _forget_events(bench, upto=4)
    other = bench.view(total, "other")
    await bench.built(other)
    assert await bench.rows(other) == {}


async def test_events_that_are_gone_before_they_were_read_are_missed(bench):
    view = bench.view(total)
    await bench.publish_many(1, key="a")
    await bench.built(view)
    await bench.publish_many(3, key="a")
    await _forget_events(bench, upto=2)
    projector = await bench.run(view)
    await until(lambda: "from position 2 to 2 are gone" in (projector.trouble() or ""))
    assert "--partial" in projector.trouble()
    assert (await view.lag()).position == 1


async def test_events_that_are_gone_are_missed_also_when_none_is_left_behind_them(bench):
    view = bench.view(total)
    await bench.publish_many(1, key="a")
    await bench.built(view)
    await bench.publish_many(3, key="a")
    await _forget_events(bench, upto=4)
    projector = await bench.run(view)
    await until(lambda: "from position 2 to 4 are gone" in (projector.trouble() or ""))
    assert (await view.lag()).gap == (2, 4)


async def test_a_view_that_was_forgotten_begins_anew(bench):
    view = bench.view(total)
    await bench.publish(key="a", n=1)
    await bench.run(view)
    await bench.drained(view)
    assert await bench.store.views.forget(view.name, actor="ada")
    await bench.publish(key="a", n=2)
    await bench.drained(view)
    assert await bench.rows(view) == {"a": {"sum": 3}}


async def _forget_events(bench, *, upto):
    table = "holdfast.outbox" if "Postgres" in type(bench.store).__name__ else "holdfast_outbox"
    async with bench.store.transaction() as tx:
        await tx.execute(f"DELETE FROM {table} WHERE position <= $1", upto)
