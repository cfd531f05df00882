"""`holdfast views` on both stores: how far each is behind, what it could not take, and building it anew."""

import pytest
from cli_kit import audit, write_program

from holdfast.kernel.ids import new_id
from holdfast.store.event_records import NewEvent
from holdfast.store.view_records import NewRow, SetAside, ViewBatch

PROGRAM = """
from holdfast import Holdfast

hf = Holdfast()

@hf.view("orders", on="order.*")
def orders(row, event):
    return event.data
"""
EVENT = new_id()


async def publish(store, number=3):
    events = [NewEvent(id=new_id(), type="order.placed", key="order:1") for _ in range(number)]
    await store.outbox.emit(events)
    lease = await store.leases.acquire("holdfast:relay", owner="r", ttl=30)
    assert await store.outbox.stamp(lease, [event.id for event in events])


async def half_read(store):
    """Two of three events are read, and one of them is set aside."""
    await publish(store)
    await store.views.begin("orders", start=0)
    lease = await store.leases.acquire("v", owner="w", ttl=30)
    poison = SetAside(
        position=2, event_id=EVENT, event="{}", key="order:1", error="ValueError: no\n  at x.py:1"
    )
    row = NewRow(key="order:1", data="{}", position=1)
    batch = ViewBatch(view="orders", generation=1, after=0, upto=2, rows=(row,), aside=(poison,))
    assert await store.views.apply(lease, batch)


async def lose_events(store):
    table = "holdfast.outbox" if "Postgres" in type(store).__name__ else "holdfast_outbox"
    async with store.transaction() as tx:
        await tx.execute(f"DELETE FROM {table} WHERE position = 1")


def test_the_views_of_a_store(shop, on_store):
    assert shop("views") == 0
    assert shop.out == "No view has been run yet.\n"
    on_store(half_read)
    assert shop("views") == 0
    row = shop.out.splitlines()[-1].split()
    assert row[:2] == ["orders", "2"]
    assert shop("views", "list", "--limit", "1") == 0
    [found] = shop.json("views")["views"]
    assert (found["view"], found["position"], found["behind"], found["aside"]) == ("orders", 2, 1, 1)
    assert (found["declared"], found["rebuild"], found["history"]) == (False, None, False)


def test_a_view_that_nobody_has_run(shop, tmp_path):
    write_program(tmp_path, PROGRAM)
    assert shop("views") == 0
    assert shop.out.splitlines()[-1].split() == ["orders", "never"]
    [found] = shop.json("views")["views"]
    assert (found["declared"], found["generation"]) == (True, None)
    assert shop("views", "show", "orders") == 1
    assert "Nobody has run" in shop.err


def test_a_view_and_what_it_could_not_take(shop, on_store):
    on_store(half_read)
    assert shop("views", "show", "orders") == 0
    assert EVENT in shop.out
    assert "ValueError: no" in shop.out
    assert "x.py" not in shop.out
    [aside] = shop.json("views", "show", "orders")["events_aside"]
    assert (aside["event_id"], aside["key"], aside["tries"]) == (EVENT, "order:1", 1)
    assert "event" not in aside


def test_what_a_rebuild_could_not_take(shop, on_store):
    """It never serves as long as that waits: so whoever looks is told what it is."""

    async def rebuilt(store):
        await half_read(store)
        await store.views.begin_rebuild("orders", start=0, actor="test")
        lease = await store.leases.acquire("v", owner="w", ttl=30)
        poison = SetAside(position=1, event_id=new_id(), event="{}", key="order:1", error="KeyError: 'total'")
        assert await store.views.apply(
            lease, ViewBatch(view="orders", generation=2, after=0, upto=3, aside=(poison,))
        )

    on_store(rebuilt)
    assert shop("views", "show", "orders") == 0
    before, _, after = shop.out.partition("The rebuild, generation 2, could not take:")
    assert "ValueError: no" in before
    assert "KeyError: 'total'" in after
    [aside] = shop.json("views", "show", "orders")["rebuild_events_aside"]
    assert (aside["position"], aside["generation"]) == (1, 2)


def test_what_a_view_stands_still_at(shop, on_store, tmp_path):
    async def unread(store):
        await publish(store)
        await store.views.begin("orders", start=0)

    on_store(unread)
    program = PROGRAM.replace('on="order.*"', 'on="order.*", on_error="stop"')
    write_program(tmp_path, program.replace("event.data", '{}["total"]'))
    assert shop("views", "show", "orders") == 0
    assert "position 1: KeyError: 'total'" in shop.out
    found = shop.json("views", "show", "orders")
    assert (found["stands_before"]["position"], found["stands_before"]["key"]) == (1, "order:1")


@pytest.mark.parametrize("is_json", [False, True])
def test_a_rebuild_is_begun(shop, on_store, is_json):
    on_store(half_read)
    assert shop("views", "rebuild", "orders", *(["--json"] if is_json else [])) == 0
    assert "orders" in shop.out
    [found] = shop.json("views")["views"]
    assert (found["generation"], found["rebuild"]["generation"], found["rebuild"]["position"]) == (1, 2, 0)
    assert shop("views") == 0
    assert "at 0" in shop.out
    assert on_store(lambda store: audit(store, "view:orders")) == [("ada@shop", "view.rebuild")]


def test_a_rebuild_that_would_know_less_needs_a_word(shop, on_store):
    on_store(half_read)
    on_store(lose_events)
    assert shop("views", "rebuild", "orders") == 2
    assert "--partial" in shop.err
    assert shop("views", "rebuild", "orders", "--partial") == 0
    assert "from position 2 on" in shop.out
    assert shop("views", "rebuild", "others") == 2
    assert "no worker has run it" in shop.err


def test_a_view_is_forgotten(shop, on_store):
    on_store(half_read)
    assert shop("views", "forget", "orders") == 0
    assert shop("views", "forget", "orders") == 1
    assert "no view 'orders'" in shop.err
    assert shop.json("views") == {"views": []}
    assert shop.json("views", "forget", "orders") == {"view": "orders", "done": False}
    assert on_store(lambda store: audit(store, "view:orders")) == [("ada@shop", "view.forget")]


# --- the doctor ---


def views_line(shop):
    code = shop("doctor")
    [line] = [line for line in shop.out.splitlines() if " views " in line]
    return code, line


async def nobody_waits(store):
    await publish(store)
    await store.views.begin("orders", start=3)


def test_the_doctor_is_content_with_a_view_that_has_read_all(shop, on_store):
    on_store(nobody_waits)
    assert views_line(shop)[1].startswith("OK")


@pytest.mark.parametrize("left", [0, 1])
def test_the_doctor_names_the_gap_at_which_a_view_stands_still(shop, on_store, left):
    """Also when no event is left behind it."""

    async def stuck(store):
        await half_read(store)
        await publish(store)
        table = "holdfast.outbox" if "Postgres" in type(store).__name__ else "holdfast_outbox"
        async with store.transaction() as tx:
            await tx.execute(f"DELETE FROM {table} WHERE position <= $1", 6 - left)

    on_store(stuck)
    code, line = views_line(shop)
    assert code == 1
    assert line.startswith("BAD")
    assert f"orders stands still: the events from position 3 to {6 - left} were pruned" in line
    assert "orders could not take 1 events" in line
    assert "holdfast views rebuild orders --partial" in line


@pytest.mark.parametrize("holder", [None, "w1"])
def test_the_doctor_sees_a_view_that_is_behind(shop, on_store, monkeypatch, holder):
    monkeypatch.setattr("holdfast.views.findings.LATE", 0.0)

    async def behind(store):
        await half_read(store)
        if holder is not None:
            await store.leases.acquire("holdfast:view:orders", owner=holder, ttl=600)

    on_store(behind)
    code, line = views_line(shop)
    assert line.startswith("BAD" if holder is None else "WARN")
    assert code == (1 if holder is None else code)
    assert "orders is 1 events behind" in line
    assert ("and nobody runs it" if holder is None else "though w1 runs it") in line


def test_the_doctor_sees_a_rebuild_that_stands_still(shop, on_store):
    async def building(store):
        await nobody_waits(store)
        await store.views.begin_rebuild("orders", start=0, actor="ada")
        await lose_events(store)

    on_store(building)
    _, line = views_line(shop)
    assert "the rebuild of orders stands still: the events from position 1 to 1 were pruned" in line


def test_the_doctor_sees_what_is_set_aside(shop, on_store, monkeypatch):
    on_store(half_read)
    line = views_line(shop)[1]
    assert line.startswith("WARN")
    assert "holdfast views show orders" in line
    monkeypatch.setattr("holdfast.views.findings.ASIDE_LIMIT", 0)
    line = views_line(shop)[1]
    assert line.startswith("BAD")
    assert "more than 0 events are set aside" in line
