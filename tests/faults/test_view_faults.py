"""Views: a projector that is killed in the middle of a batch, and one that was away longer than its lease. Row 10."""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager

import pytest
from waiting import until

from holdfast.kernel.codec import encode
from holdfast.kernel.ids import new_id
from holdfast.store.event_records import NewEvent

KEYS = 7

COUNTS = """
@hf.view("counts", on="order.*")
def counts(row, event):
    before = row or {"n": 0, "sum": 0}
    return {"n": before["n"] + 1, "sum": before["sum"] + event.data["n"]}
"""

FREEZES = """
from contextlib import ExitStack

from holdfast.kernel.crashpoints import armed
from holdfast.kernel.telemetry import subscribe

def freeze(name):
    if opened("go") or marked("frozen"):
        return
    mark("frozen")
    while not opened("go"):
        time.sleep(0.01)  # the loop stands still: nothing can tell the projector before it writes

kept = ExitStack()
kept.enter_context(armed("view.before_apply", freeze))
subscribe(lambda name, fields: mark(name, **fields) if name == "leading.lost" else None)
real = hf.store.views.apply

async def told(lease, batch):
    done = await real(lease, batch)
    mark("answered", done=done, upto=batch.upto)
    return done

def apply(lease, batch):
    return asyncio.shield(asyncio.ensure_future(told(lease, batch)))  # it is asked, also when the lease is seen to be lost

hf.store.views.apply = apply
"""


async def emit(fleet, number):
    """So many events over a few keys, in several calls so that they have successive versions."""
    events = [
        NewEvent(id=new_id(), type="order.changed", key=f"order:{place % KEYS}", data=encode({"n": place}))
        for place in range(number)
    ]
    await fleet.hf.store.outbox.emit(events)


def declared(fleet):
    """The same view in the test's own process, to look at."""
    names: dict = {"hf": fleet.hf}
    exec(COUNTS, names)  # the program that the fleet runs
    return names["counts"]


def expected(number):
    """What one pass over all events makes."""
    rows = {f"order:{key}": {"n": 0, "sum": 0} for key in range(KEYS)}
    for place in range(number):
        row = rows[f"order:{place % KEYS}"]
        row["n"], row["sum"] = row["n"] + 1, row["sum"] + place
    return rows


async def rows_of(view):
    return {entry.key: entry.row for entry in await view.find()}


async def read_up_to(fleet, number, generation=1):
    """Wait until this generation serves, and has read so many events."""

    async def there():
        found = await fleet.hf.store.views.checkpoints(view="counts")
        return [(each.generation, each.position) for each in found] == [(generation, number)]

    await until(there, 30)


@asynccontextmanager
async def watched(view):
    """A reader who looks all the time: no row may ever go back."""
    newest: dict[str, tuple[int, int]] = {}

    async def look():
        while True:
            for entry in await view.find():
                now = (entry.version, entry.position)
                assert now >= newest.get(entry.key, (0, 0)), f"{entry.key} went back to {now}: {newest}"
                newest[entry.key] = now
            await asyncio.sleep(0.005)

    looking = asyncio.create_task(look())
    yield
    assert not looking.done(), looking.exception()
    looking.cancel()


@pytest.mark.parametrize("point", ["view.before_apply", "view.after_apply"])
async def test_a_projector_is_killed_in_the_middle_of_a_batch(fleet, point):
    """Row 10: another goes on from the checkpoint; each event is in its row once, as after a rebuild."""
    fleet.program(COUNTS)
    view = declared(fleet)
    await emit(fleet, 600)
    async with watched(view):
        victim = fleet.start(lease=1, HOLDFAST_CRASH=point)
        await fleet.marked("crash", point=point)
        await victim.ended()
        fleet.start(lease=1, HOLDFAST_CRASH=point)
        await read_up_to(fleet, 600)
        assert await rows_of(view) == expected(600)
        await view.rebuild()
        await read_up_to(fleet, 600, generation=2)
    assert await rows_of(view) == expected(600)


async def test_a_projector_that_was_frozen_past_its_lease(fleet):
    """Row 10: what it had folded before is refused, by its token and by its checkpoint; the other's rows stay."""
    fleet.program(COUNTS + FREEZES)
    view = declared(fleet)
    await emit(fleet, 50)
    async with watched(view):
        zombie = fleet.start(lease=1)
        await fleet.marked("frozen", pid=zombie.pid)
        zombie.signal(signal.SIGSTOP)
        other = fleet.start(lease=1)
        await read_up_to(fleet, 50)
        fleet.open("go")
        zombie.signal(signal.SIGCONT)
        [answer] = await fleet.marked("answered", pid=zombie.pid)
        await fleet.marked("leading.lost", pid=zombie.pid, service="view counts")
    assert answer["done"] is False
    assert [each["done"] for each in fleet.marks("answered", pid=other.pid, upto=50)] == [True]
    assert await rows_of(view) == expected(50)
