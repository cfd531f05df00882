"""A place in trouble, and the questions that are asked of it, in virtual time."""

from __future__ import annotations

import asyncio

from virtual import virtually
from waiting import heard

from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.errors import StoreFull, StoreReadOnly, StoreUnavailable
from holdfast.store.cache_records import Entry
from holdfast.views import cache_place
from holdfast.views.cache_keys import Wanted
from holdfast.views.cache_memory import MemoryCache
from holdfast.views.cache_place import PATIENCE, REST, Place


class Port:
    """Keeps in memory, takes its time, and does as the test says."""

    def __init__(self):
        self.inner, self.takes, self.error, self.asked = MemoryCache(), 0.01, None, []

    def __getattr__(self, verb):
        async def call(*args, **options):
            self.asked.append((verb, *args))
            answer = None
            if self.error is None:
                answer = await getattr(self.inner, verb)(*args, **options)
            await sleep(self.takes)
            if self.error is not None:
                raise self.error
            return answer

        return call

    async def keep(self, key, value="1", tags=()):
        load = await self.inner.begin(key, tags=tags, lease=5)
        assert await self.inner.put(load, value, fresh=60, stale=60)


def wanted(key="k", tags=()):
    return Wanted(key, tuple(tags), (), {})


def on_a_place(test):
    async def main():
        port = Port()
        await test(Place("store", port), port)

    virtually(main)


def test_questions_are_asked_together_and_each_key_once():
    async def test(place, port):
        for key in ("a", "b"):
            await port.keep(key, f'"{key}"')
        found = await asyncio.gather(*(place.look(wanted(key)) for key in "aabbab" * 100))
        assert [entry.value for entry in found] == ['"a"', '"a"', '"b"', '"b"', '"a"', '"b"'] * 100
        assert len(port.asked) <= 3
        assert sum(len(keys) for _, keys in port.asked) <= 4

    on_a_place(test)


def test_nobody_gets_an_answer_that_was_given_before_he_came():
    async def test(place, port):
        await port.keep("k")
        port.takes = 1
        early = asyncio.create_task(place.look(wanted()))
        await sleep(0.5)
        await port.inner.invalidate(["k"])
        late = await place.look(wanted())
        assert [(await early).value, late.value] == ["1", None]

    on_a_place(test)


def test_who_gives_up_a_question_takes_no_other_with_it():
    async def test(place, port):
        await port.keep("k")
        port.takes = 1
        first = asyncio.create_task(place.look(wanted()))
        await sleep(0.1)
        second, third = (asyncio.create_task(place.look(wanted())) for _ in range(2))
        await sleep(0.1)
        first.cancel()
        second.cancel()
        assert (await third).value == "1"

    on_a_place(test)


def test_an_answer_that_took_too_long_is_none():
    async def test(place, port):
        await port.keep("k")
        port.takes = 3600
        began = monotonic()
        with heard("cache.unreachable") as notes:
            assert await asyncio.gather(*(place.look(wanted(str(n))) for n in range(300))) == [None] * 300
        assert monotonic() - began <= PATIENCE + 0.001
        assert {note["verb"] for note in notes} == {"look"}

    on_a_place(test)


def test_a_value_whose_time_ended_on_the_way_is_not_served():
    async def test(place, port):
        load = await port.inner.begin("k", tags=(), lease=5)
        await port.inner.put(load, "1", fresh=1, stale=1)
        port.takes = 1.5
        assert (await place.look(wanted())).value is None

    on_a_place(test)


def test_a_place_that_has_failed_rests_and_is_asked_again():
    async def test(place, port):
        await port.keep("k")
        port.error = StoreUnavailable("gone")
        assert await place.look(wanted()) is None
        asked = len(port.asked)
        for _ in range(100):
            assert await place.look(wanted()) is None
            assert await place.begin(wanted(), lease=5, why="missing") is None
        assert len(port.asked) == asked
        port.error = None
        await sleep(REST * 1.3)
        assert (await place.look(wanted())).value == "1"

    on_a_place(test)


def test_one_finds_out_whether_a_place_answers_again_and_nobody_else_waits():
    async def test(place, port):
        await port.keep("k")
        port.takes = 1000
        assert await place.look(wanted()) is None
        await sleep(REST * 1.3)
        asked, began = len(port.asked), monotonic()

        async def waited(place):
            assert await place.look(wanted()) is None
            return monotonic() - began

        waits = await asyncio.gather(*(waited(place) for _ in range(100)))
        assert sorted(round(each, 3) for each in waits) == [0.0] * 99 + [PATIENCE]
        assert len(port.asked) == asked + 1
        port.takes = 0.01
        await sleep(REST * 1.3)
        assert (await place.look(wanted())).value == "1"
        found = await asyncio.gather(*(place.look(wanted()) for _ in range(5)))
        assert [each.value for each in found] == ["1"] * 5

    on_a_place(test)


def test_a_place_that_keeps_nothing_new_is_read():
    async def test(place, port):
        await port.keep("k")
        for error in (StoreFull("full"), StoreReadOnly("a replica")):
            port.error = error
            assert await place.begin(wanted("new"), lease=5, why="missing") is None
            port.error = None
            assert (await place.look(wanted())).value == "1"

    on_a_place(test)


def test_a_place_whose_writers_wait_for_a_transaction_is_read():
    async def test(place, port):
        await port.keep("k")
        load = await port.inner.begin("new", tags=(), lease=60)
        for write in (
            lambda: place.begin(wanted("other"), lease=5, why="missing"),
            lambda: place.renew(load, lease=60),
            lambda: place.put(load, "1", fresh=1, stale=1),
            lambda: place.abandon(load, rest=0.0),
            lambda: place.invalidate("tag", ("t",)),
        ):
            port.takes = 2 * PATIENCE
            assert not await write()
            port.takes = 0.01
            assert (await place.look(wanted())).value == "1"

    on_a_place(test)


def test_errors_of_any_kind_are_misses():
    async def test(place, port):
        for error in (RuntimeError("a bug"), OSError("no"), TimeoutError(), KeyError("x")):
            port.error = error
            assert await place.look(wanted()) is None
            await sleep(2 * REST)
            assert await place.put(None, "1", fresh=1, stale=1) is None
            await sleep(2 * REST)

    on_a_place(test)


def test_what_could_not_be_invalidated_is_not_served_and_made_up_for():
    async def test(place, port):
        await port.keep("k", tags=("t",))
        await port.keep("other")
        port.error = StoreUnavailable("gone")
        assert await place.invalidate("tag", ["t"]) is False
        assert await place.invalidate("key", ["k2"]) is False
        port.error = None
        place._rests.get().end()
        assert await place.look(wanted(tags=("t",))) is None
        assert await place.look(wanted("k2")) is None
        assert await place.begin(wanted("k2"), lease=5, why="missing") is None
        assert (await place.look(wanted("other"))).value == "1"
        await sleep(3 * REST)
        assert await place.look(wanted(tags=("t",))) == Entry()
        place.stop()

    on_a_place(test)


def test_who_is_cancelled_while_invalidating_has_invalidated():
    async def test(place, port):
        await port.keep("k")
        port.takes = 1
        port.inner.invalidate, real = _never, port.inner.invalidate
        task = asyncio.create_task(place.invalidate("key", ["k"]))
        await sleep(0.1)
        task.cancel()
        await asyncio.wait([task])
        port.inner.invalidate = real
        assert await place.look(wanted()) is None
        await sleep(10)
        assert await place.look(wanted()) == Entry()

    on_a_place(test)


async def _never(*_):
    await asyncio.Event().wait()


def test_what_is_owed_is_bounded(monkeypatch):
    monkeypatch.setattr(cache_place, "_MOST_OWED", 10)

    async def test(place, port):
        port.error = StoreUnavailable("gone")
        with heard("cache.invalidation_lost") as notes:
            for number in range(20):
                assert await place.invalidate("key", [f"k{number}"]) is False
        assert len(place._owed["key"]) == 10
        assert sum(note["number"] for note in notes) >= 10
        with heard("cache.invalidation_owed") as notes:
            place.stop()
        assert notes[0]["number"] == 10
        port.error = None
        await place.start()
        assert not place._owed["key"]

    on_a_place(test)


def test_an_invalidation_is_not_taken_for_done_because_an_earlier_one_of_the_same_name_is():
    async def test(place, port):
        port.takes = 1
        first = asyncio.create_task(place.invalidate("tag", ["t"]))
        await sleep(0.5)
        await port.keep("k", tags=["t"])
        other = asyncio.create_task(place.invalidate("key", ["another"]))
        await sleep(0)
        assert await place.invalidate("tag", ["t"])
        [entry] = await port.inner.get(["k"])
        assert entry.value is None
        assert [await first, await other] == [True, True]

    on_a_place(test)
