"""Room for suspects: one worker of the fleet makes it, for as long as it waits."""

from types import SimpleNamespace

import pytest

from holdfast.jobs import room as module
from holdfast.jobs.room import Room


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(time=1000.0)
    monkeypatch.setattr(module, "monotonic", lambda: now.time)
    return now


class Leases:
    def __init__(self, clock):
        self.clock, self.holder, self.until = clock, None, 0.0

    async def acquire(self, name, *, owner, ttl):
        if self.holder != owner and self.clock.time < self.until:
            return None
        self.holder, self.until = owner, self.clock.time + ttl
        return object()

    async def release(self, lease):
        self.until = 0.0


async def test_the_right_to_make_room_lasts_as_long_as_the_wait_for_it(clock):
    leases = Leases(clock)
    busy = {"a run": SimpleNamespace(began=clock.time)}
    first, second = (Room(leases, busy, worker=name, lease=2.0) for name in ("first", "second"))
    await first.make()
    assert first.clears()
    for _ in range(10):
        clock.time += 1
        await first.keep()
        await second.make()
        assert first.clears()
        assert not second.clears()


async def test_who_has_lost_the_right_to_make_room_takes_work_again(clock):
    leases = Leases(clock)
    busy = {"a run": SimpleNamespace(began=clock.time)}
    first, second = (Room(leases, busy, worker=name, lease=2.0) for name in ("first", "second"))
    await first.make()
    clock.time += 3  # it stood still
    await second.make()
    await first.keep()
    assert second.clears()
    assert not first.clears()


async def test_who_has_nothing_to_do_looks_although_another_makes_room(clock):
    leases, runs = Leases(clock), {"a run": SimpleNamespace(began=clock.time)}
    first = Room(leases, dict(runs), worker="first", lease=30.0)
    second = Room(leases, runs, worker="second", lease=30.0)
    await first.make()
    second.looked()
    await second.make()
    clock.time += 5
    assert not second.is_due()
    runs.clear()
    assert second.is_due()


async def test_who_leaves_gives_the_right_to_make_room_to_another(clock):
    leases = Leases(clock)
    busy = {"a run": SimpleNamespace(began=clock.time)}
    first, second = (Room(leases, busy, worker=name, lease=30.0) for name in ("first", "second"))
    await first.make()
    await first.give_back()
    await second.make()
    assert second.clears()
    assert not first.clears()
