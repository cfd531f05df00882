"""Cached functions on every place: what is served, what is loaded, what is forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec
import pytest
from waiting import heard, until

from holdfast import Secret
from holdfast.guards import deadline
from holdfast.kernel.errors import DeadlinePassed, NotOpen, StoreFull, TimedOut, UsageError
from holdfast.views.cache_place import Place
from holdfast.views.cache_terms import Terms


class Source:
    """Something that is slow to ask: counts how often it was, and answers when it is told to."""

    def __init__(self):
        self.loads, self.gate, self.error, self.running, self.most = [], asyncio.Event(), None, 0, 0
        self.gate.set()

    async def load(self, *args):
        self.loads.append(args)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            number = len(self.loads)
            await self.gate.wait()
            if self.error is not None:
                raise self.error
            return number
        finally:
            self.running -= 1


@pytest.fixture
def source():
    return Source()


def declare(hf, on, source, **options):
    terms = {"fresh": 300, "stale": 7200, "key": "gallery:{user}", "tags": ("user:{user}",), "on": on}

    @hf.cached(**{**terms, **options})
    async def gallery(user: int) -> int:
        return await source.load(user)

    return gallery


@pytest.fixture
def gallery(hf, on, source):
    return declare(hf, on, source)


@pytest.fixture
def stale(hf, on, source):
    """Stale from the moment that it is written."""
    return declare(hf, on, source, fresh=0, key="stale:{user}")


@pytest.fixture
def old(hf, on, source):
    """Too old soon after it is written."""
    return declare(hf, on, source, fresh=0.001, stale=0.001, key="old:{user}")


# --- serving ---


async def test_what_is_fresh_is_not_loaded_again(gallery, source):
    assert [await gallery(7), await gallery(7), await gallery(user=7), await gallery(8)] == [1, 1, 1, 2]
    assert source.loads == [(7,), (8,)]
    assert gallery.__name__ == "gallery"
    assert gallery.key(7) == "gallery:7"
    assert await gallery.__wrapped__(7) == 3


async def test_what_is_stale_is_served_at_once_and_refreshed_behind(stale, source):
    assert await stale(7) == 1
    source.gate.clear()
    assert [await stale(7) for _ in range(5)] == [1] * 5
    await until(lambda: len(source.loads) == 2)
    assert await stale(7) == 1, "the refresh is under way"
    source.gate.set()
    await until(lambda: source.running == 0)
    assert len(source.loads) == 2
    await until(lambda: becomes(stale, 2))


async def test_a_value_tells_its_age(hf, on, source):
    """By the clock of whoever keeps it; what was loaded for this call is new."""
    aged = declare(hf, on, source, fresh=0.2, stale=7200, key="aged:{user}")
    loaded = await aged.aged(7)
    assert (loaded.value, loaded.age, loaded.is_fresh) == (1, 0.0, True)
    source.gate.clear()
    ages = []

    async def stale():
        ages.append(await aged.aged(7))
        return not ages[-1].is_fresh

    await until(stale)
    assert ages[-1].value == 1
    assert 0.15 < ages[-1].age < 60
    assert [each.age for each in ages] == sorted(each.age for each in ages)
    source.gate.set()
    await until(lambda: not hf.cache.flights._all)
    assert (await aged.aged(7)).value == 2
    assert (await asyncio.to_thread(aged.aged_sync, 7)).value >= 2


async def becomes(function, least):
    return await function(7) >= least


async def test_so_many_refreshes_at_a_time_and_no_more(hf, stale, source, monkeypatch):
    """However many values are stale: what is behind the cache gets no crowd, and the rest is served as it is."""
    monkeypatch.setattr("holdfast.views.cached._MOST_REFRESHES", 5)
    values = [await stale(user) for user in range(12)]
    for begun in (5, 5, 2):  # those that were refreshed are stale again, so they are not asked for
        source.gate.clear()
        loads = len(source.loads)
        users = [user for user in range(12) if source.loads.count((user,)) == 1]
        with heard("cache.refresh_put_off") as put_off:
            assert [await stale(user) for user in users] == [values[user] for user in users]
        await until(lambda expected=loads + begun: len(source.loads) == expected)
        assert len(put_off) == len(users) - begun
        source.gate.set()
        await until(lambda: not hf.cache.flights._all)
    assert (len(source.loads), source.most) == (24, 5)


async def test_what_is_too_old_is_waited_for(old, source):
    assert await old(7) == 1
    await asyncio.sleep(0.01)
    assert await old(7) == 2


async def test_many_callers_share_one_load(gallery, source):
    source.gate.clear()
    callers = [asyncio.create_task(gallery(7)) for _ in range(500)]
    await until(lambda: source.loads)
    source.gate.set()
    assert await asyncio.gather(*callers) == [1] * 500
    assert source.loads == [(7,)]


async def test_two_processes_share_one_load(gallery, hf, other, on, source):
    elsewhere = declare(other, on, source)
    source.gate.clear()
    callers = [asyncio.create_task(each(7)) for each in (gallery, elsewhere) * 20]
    await until(lambda: source.loads)
    await asyncio.sleep(0.05)
    source.gate.set()
    assert await asyncio.gather(*callers) == [1] * 40
    assert source.loads == [(7,)]


async def test_two_processes_have_one_refresher(stale, other, on, source):
    elsewhere = declare(other, on, source, fresh=0, key="stale:{user}")
    assert await stale(7) == 1
    source.gate.clear()
    for _ in range(10):
        assert [await stale(7), await elsewhere(7)] == [1, 1]
    await until(lambda: len(source.loads) == 2)
    await asyncio.sleep(0.05)
    assert len(source.loads) == 2
    source.gate.set()


# --- values ---


@dataclass
class Picture:
    title: str
    size: tuple[int, int]


class Artist(msgspec.Struct):
    name: str


async def test_values_are_what_the_function_says_it_returns(hf, on):
    @hf.cached(fresh=60, stale=60, on=on)
    async def pictures(page: int) -> list[Picture]:
        return [Picture("a", (page, 2))]

    @hf.cached(fresh=60, stale=60, on=on)
    async def artists() -> dict[str, Artist] | None:
        return {"a": Artist("Ada")}

    for _ in range(2):
        assert await pictures(1) == [Picture("a", (1, 2))]
        assert await artists() == {"a": Artist("Ada")}


async def test_without_an_annotation_the_first_value_is_as_the_later_ones(hf, on):
    @hf.cached(fresh=60, stale=60, on=on)
    async def pair():
        return (1, Artist("Ada"))

    assert await pair() == [1, {"name": "Ada"}] == await pair()


async def test_none_is_a_value(hf, on):
    loads = []

    @hf.cached(fresh=60, stale=60, on=on)
    async def nothing() -> None:
        loads.append(1)

    assert [await nothing(), await nothing()] == [None, None]
    assert loads == [1]


async def test_each_caller_has_a_copy(hf, on):
    @hf.cached(fresh=60, stale=60, on=on)
    async def rows() -> list[int]:
        return [1]

    first, second = await asyncio.gather(rows(), rows())
    first.append(2)
    assert [second, await rows()] == [[1], [1]]


async def test_what_cannot_be_kept_is_said_at_the_first_call(hf, on):
    @hf.cached(fresh=60, stale=60, on=on)
    async def thing() -> object:
        return object()

    @hf.cached(fresh=60, stale=60, on=on)
    async def wrong() -> int:
        return "seven"

    @hf.cached(fresh=60, stale=60, on=on)
    async def large() -> str:
        return "x" * 2**20

    with pytest.raises(UsageError, match=r"thing returns what cannot be cached.*has the type object"):
        await thing()
    with pytest.raises(UsageError, match=r"wrong returns what cannot be cached.*Expected `int`"):
        await wrong()
    with pytest.raises(UsageError, match=r"large returns what cannot be cached.*too large"):
        await large()


async def test_what_another_version_has_kept_is_loaded_anew(hf, on, source):
    @hf.cached(fresh=60, stale=60, key="v:{user}", on=on)
    async def versioned(user: int) -> int:
        return await source.load(user)

    place = hf.cache._places[on].kept
    load = await place.begin("v:7", tags=(), lease=5)
    await place.put(load, '"text"', fresh=60, stale=60)
    with heard("cache.unreadable") as notes:
        assert [await versioned(7), await versioned(7)] == [1, 1]
    assert notes


async def test_a_damaged_value_on_a_redis_is_loaded_anew(hf, on, gallery, source):
    if on != "redis":
        pytest.skip("databases know what text is")
    assert await gallery(7) == 1
    cache = hf.cache.redis
    await cache._server._client.hset(cache._key("value", "gallery:7"), "value", b"\xff\xfe")
    assert [await gallery(7), await gallery(7)] == [2, 2]


async def test_a_plain_function_runs_in_a_thread_and_one_that_hides_a_coroutine_is_awaited(hf, on):
    import functools
    import threading

    def plainly(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    @hf.cached(fresh=60, stale=60, on=on)
    def plain(user: int) -> str:
        assert threading.current_thread() is not threading.main_thread()
        return f"plain {user}"

    @hf.cached(fresh=60, stale=60, on=on)
    @plainly
    async def hidden(user: int) -> str:
        return f"hidden {user}"

    assert [await plain(7), await plain(7), await hidden(7)] == ["plain 7", "plain 7", "hidden 7"]


async def test_plain_functions_that_call_each_other_do_not_run_out_of_threads(hf, on):
    """Each outer one waits in a thread for an inner one that needs another; and their callers have all threads of the loop."""

    @hf.cached(fresh=300, stale=600, key="inner:{number}", on=on)
    def inner(number: int) -> int:
        return number

    @hf.cached(fresh=300, stale=600, key="outer:{number}", on=on)
    def outer(number: int) -> int:
        return inner.call_sync(number) + 1

    async with asyncio.timeout(20):
        assert sum(await asyncio.gather(*(outer(number) for number in range(100)))) == 5050
        calls = (asyncio.to_thread(outer.call_sync, number) for number in range(100, 200))
        assert len(await asyncio.gather(*calls)) == 100


async def test_from_a_thread(hf, gallery, source):
    assert await asyncio.to_thread(gallery.call_sync, 7) == 1
    assert await asyncio.to_thread(gallery.invalidate_sync, 7)
    assert await asyncio.to_thread(gallery.call_sync, 7) == 2
    assert await asyncio.to_thread(hf.cache.invalidate_tags_sync, "user:7")
    assert await gallery(7) == 3


async def test_another_event_loop_takes_nothing_from_this_one(hf, on, gallery, source):
    """The connections of a store may be this loop's alone. Then the other loads for itself, and nobody else does."""

    async def elsewhere():
        return [await gallery(7), await gallery(7)]

    assert await gallery(7) == 1
    await asyncio.to_thread(asyncio.run, elsewhere())
    loads = len(source.loads)
    assert await gallery(7) == 1
    assert len(source.loads) == loads


async def test_what_another_event_loop_invalidates_is_kept_here_again(hf, on, gallery, source):
    async def elsewhere():
        await gallery.invalidate(7)

    assert await gallery(7) == 1
    await asyncio.to_thread(asyncio.run, elsewhere())
    await gallery(7)

    async def kept():
        before = len(source.loads)
        return await gallery(7) and len(source.loads) == before

    await until(kept)
    assert await gallery(7) > 1


async def test_what_is_stale_is_not_loaded_when_nothing_can_be_kept(stale, on, source, monkeypatch):
    """It would be loaded again and again, for nobody."""
    if on == "memory":
        pytest.skip("there is always room: the least used goes")
    assert await stale(7) == 1

    async def full(*_, **__):
        raise StoreFull("no room")

    monkeypatch.setattr(stale._place.kept, "begin", full)
    for _ in range(5):
        assert await stale(7) == 1
        await until(lambda: stale._flight(stale._names.wanted((7,), {})) is None)
    assert len(source.loads) == 1


# --- errors ---


async def test_an_error_is_for_the_callers_of_that_load_and_not_kept(gallery, source):
    source.error = ZeroDivisionError("no")
    source.gate.clear()
    callers = [asyncio.create_task(gallery(7)) for _ in range(5)]
    await until(lambda: source.loads)
    source.gate.set()
    found = await asyncio.gather(*callers, return_exceptions=True)
    assert [type(each) for each in found] == [ZeroDivisionError] * 5
    assert source.loads == [(7,)]
    source.error = None
    assert await gallery(7) == 2


async def test_after_an_error_another_process_need_not_wait(hf, other, on, source):
    here, there = (declare(each, on, source, lease=600, wait=600) for each in (hf, other))
    source.error = ZeroDivisionError("no")
    with pytest.raises(ZeroDivisionError):
        await here(7)
    source.error = None
    async with asyncio.timeout(60):
        assert await there(7) == 2


async def test_an_error_of_a_refresh_is_noted_and_the_stale_value_served(stale, source, monkeypatch):
    monkeypatch.setattr(Terms, "rest", lambda _: 60.0)
    assert await stale(7) == 1
    source.error = ZeroDivisionError("no")
    with heard("cache.load_failed") as notes:
        assert await stale(7) == 1
        await until(lambda: notes)
        assert [await stale(7) for _ in range(20)] == [1] * 20
    assert (notes[0]["key"], notes[0]["why"]) == ("stale:7", "stale")
    assert len(source.loads) == 2, "it rests before the next try"


async def test_what_is_secret_is_not_noted(hf, on, notes):
    @hf.cached(fresh=0, stale=60, on=on)
    async def profile(token: Secret[str]) -> str:
        raise ZeroDivisionError(token)

    with pytest.raises(ZeroDivisionError):
        await profile("hunter2")
    [error] = [fields["error"] for name, fields in notes if name == "cache.load_failed"]
    assert error == "ZeroDivisionError"
    assert "hunter2" not in repr(notes)


async def test_a_caller_that_is_cancelled_leaves_the_load_to_the_others(gallery, source):
    source.gate.clear()
    first, second = asyncio.create_task(gallery(7)), asyncio.create_task(gallery(7))
    await until(lambda: source.loads)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    source.gate.set()
    assert await second == 1
    assert source.loads == [(7,)]


async def test_a_load_goes_on_when_all_callers_are_cancelled(gallery, source):
    source.gate.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await gallery(7)
    source.gate.set()
    await until(lambda: source.running == 0)
    assert await gallery(7) == 1


async def test_a_deadline_ends_the_wait_and_not_the_load(gallery, source):
    source.gate.clear()
    patient = asyncio.create_task(gallery(7))
    with deadline(0.3), pytest.raises(TimedOut, match=r"'gallery:7' was not there before the deadline"):
        await gallery(7)
    with deadline(0), pytest.raises(DeadlinePassed):
        await gallery(7)
    source.gate.set()
    assert await patient == 1
    with deadline(0):
        assert await gallery(7) == 1  # what is there needs no time


async def test_the_deadline_of_the_first_caller_is_not_that_of_the_load(hf, on):
    from holdfast.guards import time_left

    seen = []

    @hf.cached(fresh=60, stale=60, on=on)
    async def left() -> int:
        seen.append(time_left())
        return 1

    with deadline(5):
        assert await left() == 1
    assert seen == [None]


async def test_a_load_has_a_timeout(hf, on):
    @hf.cached(fresh=60, stale=60, timeout=0.05, on=on)
    async def slow() -> int:
        await asyncio.sleep(60)

    with pytest.raises(TimedOut, match=r"slow took longer than its timeout of 0.05 s"):
        await slow()


async def test_a_function_that_cancels_itself_cancels_nobody_else(hf, on):
    @hf.cached(fresh=60, stale=60, on=on)
    async def strange() -> int:
        raise asyncio.CancelledError

    with pytest.raises(Exception, match="was cancelled from inside"):
        await strange()


async def test_a_load_that_asks_for_itself_is_refused(hf, on):
    @hf.cached(fresh=60, stale=60, on=on)
    async def round_and_round(user: int) -> int:
        return await round_and_round(user)

    @hf.cached(fresh=60, stale=60, on=on)
    async def countdown(number: int) -> int:
        return 0 if number == 0 else 1 + await countdown(number - 1)

    with pytest.raises(UsageError, match="asks for its own value"):
        await round_and_round(7)
    assert await countdown(3) == 3


async def test_leaving_ends_loads_and_tells_who_waits(place, source):
    on, make = place
    hf = make()
    gallery = declare(hf, on, source)
    async with hf:
        source.gate.clear()
        waiting = asyncio.create_task(gallery(7))
        await until(lambda: source.loads)
    with pytest.raises(NotOpen, match="left meanwhile"):
        await waiting
    assert source.running == 0
    async with hf:
        source.gate.set()
        assert await gallery(7) == 2, "the right to load it was given back"


# --- forgetting ---


async def test_what_is_invalidated_is_loaded_anew(hf, gallery, source):
    assert [await gallery(7), await gallery(8)] == [1, 2]
    assert await gallery.invalidate(7)
    assert [await gallery(7), await gallery(8)] == [3, 2]
    assert await hf.cache.invalidate("gallery:8", "never")
    assert [await gallery(7), await gallery(8)] == [3, 4]
    assert await hf.cache.invalidate_tags("user:7", "never")
    assert [await gallery(7), await gallery(8)] == [5, 4]


async def test_another_process_invalidates(gallery, other, on, source):
    assert await gallery(7) == 1
    elsewhere = declare(other, on, source)
    assert await elsewhere(7) == 1
    assert await elsewhere.invalidate(7)
    assert await gallery(7) == 2
    assert await other.cache.invalidate_tags("user:7")
    assert await gallery(7) == 3


@pytest.mark.parametrize("by", ["key", "tag"])
async def test_who_comes_after_an_invalidation_gets_nothing_older(hf, gallery, source, by):
    source.gate.clear()
    before = asyncio.create_task(gallery(7))
    await until(lambda: source.loads)
    assert await (gallery.invalidate(7) if by == "key" else hf.cache.invalidate_tags("user:7"))
    after = asyncio.create_task(gallery(7))
    await asyncio.sleep(0.02)
    assert source.loads == [(7,)], "one at a time in a process"
    source.gate.set()
    assert [await before, await after, await gallery(7)] == [1, 2, 2]
    assert source.most == 1


@pytest.mark.parametrize("by", ["key", "tag"])
async def test_a_load_that_another_process_invalidated_is_made_again(gallery, other, on, source, by):
    elsewhere = declare(other, on, source)
    source.gate.clear()
    before = asyncio.create_task(gallery(7))
    await until(lambda: source.loads)
    await (elsewhere.invalidate(7) if by == "key" else other.cache.invalidate_tags("user:7"))
    after = asyncio.create_task(gallery(7))
    await asyncio.sleep(0.02)
    source.gate.set()
    assert [await before, await after, await gallery(7), await elsewhere(7)] == [2, 2, 2, 2]


async def test_who_comes_between_two_invalidations_gets_nothing_older_than_the_first(
    gallery, other, on, source
):
    """The second is this process's own, and it ends the flight that the first has outdated."""
    elsewhere = declare(other, on, source)
    source.gate.clear()
    before = asyncio.create_task(gallery(7))
    await until(lambda: source.loads)
    await elsewhere.invalidate(7)
    between = asyncio.create_task(gallery(7))
    await asyncio.sleep(0.02)
    await gallery.invalidate(7)
    source.gate.set()
    assert [await before, await between] == [1, 2]


async def test_who_comes_after_a_load_began_does_not_trust_it_when_the_place_is_silent(
    gallery, other, on, source, monkeypatch
):
    elsewhere = declare(other, on, source)
    source.gate.clear()
    before = asyncio.create_task(gallery(7))
    await until(lambda: source.loads)
    await elsewhere.invalidate(7)
    after = [asyncio.create_task(gallery(7)) for _ in range(3)]
    await asyncio.sleep(0.02)

    async def no_answer(self, *args, **options):
        return None

    monkeypatch.setattr(Place, "put", no_answer)
    source.gate.set()
    assert [await before, *await asyncio.gather(*after)] == [1, 2, 2, 2]
    assert source.most == 1


async def test_who_comes_after_an_invalidation_loads_for_himself_when_another_takes_too_long(
    hf, other, on, source
):
    """What was outdated before is not brought out again."""
    slow = Source()
    slow.gate.clear()
    here, there = declare(hf, on, source, wait=0.3), declare(other, on, slow)
    source.gate.clear()
    first = asyncio.create_task(here(7))
    await until(lambda: len(source.loads) == 1)
    await there.invalidate(7)
    blocker = asyncio.create_task(there(7))
    await until(lambda: len(slow.loads) == 1)
    second = asyncio.create_task(here(7))  # joins the first load
    await asyncio.sleep(0)
    source.gate.set()
    assert await second == 2
    assert await first == 2
    slow.gate.set()
    assert await blocker == 1


async def test_refresh_loads_whatever_is_there(gallery, source):
    assert await gallery(7) == 1
    assert await gallery.refresh(7) == 2
    assert await gallery(7) == 2


async def test_those_who_refresh_share_the_next_load_and_never_one_under_way(gallery, source):
    source.gate.clear()
    first = asyncio.create_task(gallery(7))
    await until(lambda: source.loads)
    refreshing = [asyncio.create_task(gallery.refresh(7)) for _ in range(10)]
    await asyncio.sleep(0.02)
    assert source.loads == [(7,)]
    source.gate.set()
    assert await first == 1
    assert await asyncio.gather(*refreshing) == [2] * 10
    assert source.most == 1


async def test_a_refresh_that_fails_is_told_and_the_value_stays(gallery, source):
    assert await gallery(7) == 1
    source.error = ZeroDivisionError("no")
    with pytest.raises(ZeroDivisionError):
        await gallery.refresh(7)
    assert await gallery(7) == 1


async def test_who_joins_a_refresh_that_another_process_invalidated_gets_what_is_newer(
    gallery, other, on, source
):
    elsewhere = declare(other, on, source)
    assert await gallery(7) == 1
    source.gate.clear()
    refreshing = asyncio.create_task(gallery.refresh(7))
    await until(lambda: len(source.loads) == 2)
    await elsewhere.invalidate(7)
    after = asyncio.create_task(gallery(7))
    await asyncio.sleep(0.05)
    source.gate.set()
    assert [await refreshing, await after] == [2, 3]


async def test_a_refresh_does_not_take_an_older_value_for_its_own(gallery, other, on, source):
    """Another refreshes at the same time, and takes the right: what is kept meanwhile is from before both."""
    elsewhere = declare(other, on, source)
    assert await gallery(7) == 1
    source.gate.clear()
    first = asyncio.create_task(gallery.refresh(7))
    await until(lambda: len(source.loads) == 2)
    second = asyncio.create_task(elsewhere.refresh(7))
    await until(lambda: len(source.loads) == 3)
    source.gate.set()
    assert [await first, await second] == [2, 3]
    assert await gallery(7) == 3


async def test_two_processes_refresh_at_once(gallery, other, on, source):
    elsewhere = declare(other, on, source)
    found = await asyncio.gather(*(each.refresh(7) for each in (gallery, elsewhere) * 5))
    assert await gallery(7) == await elsewhere(7)
    assert await gallery(7) in found, "that of the one who got the right last"
    assert len(source.loads) <= 4


# --- transactions ---


async def test_an_invalidation_counts_with_the_rows_that_it_is_about(hf, on, gallery, source):
    if on != "store":
        pytest.skip("only a store has transactions")
    assert await gallery(7) == 1
    async with hf.transaction() as tx:
        await hf.cache.invalidate_tags("user:7", tx=tx)
        assert await gallery(7) == 1
    assert await gallery(7) == 2
    with pytest.raises(ZeroDivisionError):
        async with hf.transaction() as tx:
            await hf.cache.invalidate_tags("user:7", tx=tx)
            raise ZeroDivisionError
    assert await gallery(7) == 2


async def test_readers_that_wait_for_an_open_transaction_leave_connections_to_others(hf, on, source):
    """Its tag is new, so its end decides whether the tag is known. Jobs need the database meanwhile."""
    if on != "store" or hf._inside.location.kind != "postgres":
        pytest.skip("elsewhere nobody waits for a tag")
    untagged = declare(hf, on, source, key="untagged:{user}", tags=())
    tagged = declare(hf, on, source, tags=("all", "user:{user}"))
    await untagged(0)
    async with hf.transaction() as tx:
        await hf.cache.invalidate_tags("all", tx=tx)
        readers = [asyncio.create_task(tagged(user)) for user in range(100)]
        for _ in range(10):
            async with asyncio.timeout(1):
                assert await hf.queues.paused() == []
                await untagged(0)
            await asyncio.sleep(0.05)
        assert len(source.loads) == 1  # of the one without a tag
    await asyncio.gather(*readers)
    await asyncio.gather(*(tagged(user) for user in range(100)))
    assert len(source.loads) == 101


async def test_sync_code_invalidates_with_its_rows(hf, on, gallery, source):
    if on != "store":
        pytest.skip("only a store has transactions")

    def sync():
        with hf.blocking.transaction() as tx:
            assert hf.cache.invalidate_tags_sync("user:7", tx=tx)
            return gallery.call_sync(7)

    assert [await gallery(7), await asyncio.to_thread(sync), await gallery(7)] == [1, 1, 2]


async def test_inside_a_transaction_nobody_waits_for_himself(hf, gallery, stale, source):
    """On SQLite it holds the only lock: what is missing is loaded without the cache, what is stale is served."""
    assert await stale(7) == 1
    async with asyncio.timeout(4), hf.transaction():
        assert await gallery(7) == 2
        assert await stale(7) == 1
    assert await gallery(7) in (2, 3)


async def test_an_invalidation_that_would_wait_for_itself_is_refused(hf, on, gallery, source):
    """Before the commit it would be too early in any case."""
    if on != "store" or hf._inside.location.kind != "sqlite":
        pytest.skip("only there the transaction is in its way")
    async with hf.transaction():
        for way in (gallery.invalidate, lambda _: hf.cache.invalidate_tags("user:7"), gallery.refresh):
            with pytest.raises(UsageError, match="Pass tx=tx when it takes that"):
                await way(7)


async def test_sync_code_inside_its_transaction_does_not_wait_for_itself(hf, on, gallery, stale, source):
    """What is missing is loaded without the cache, what is stale is served, and what is too early is refused at once."""
    if on != "store" or hf._inside.location.kind != "sqlite":
        pytest.skip("only there the transaction is in its way")
    assert await stale(7) == 1

    def sync():
        with hf.blocking.transaction() as tx:
            assert tx.execute("CREATE TABLE t (n INTEGER)") == 0
            assert [gallery.call_sync(7), stale.call_sync(7)] == [2, 1]
            for way in (gallery.invalidate_sync, lambda _: hf.cache.invalidate_tags_sync("user:7")):
                with pytest.raises(UsageError, match="Pass tx=tx when it takes that"):
                    way(7)
        return gallery.invalidate_sync(7)

    with heard("cache.unreachable") as notes:
        assert await asyncio.to_thread(sync)
    assert notes == []


async def test_a_holdfast_that_is_not_entered_keeps_nothing_and_fails_nobody(place, source):
    on, make = place
    if on == "memory":
        pytest.skip("it is there without being entered")
    gallery = declare(make(), on, source)
    with heard("cache.unreachable") as notes:
        assert [await gallery(7), await gallery(7)] == [1, 2]
    assert "NotOpen" in notes[0]["error"]


async def test_sync_code_opens_what_nobody_has_entered(place, source):
    on, make = place
    hf = make()
    gallery = declare(hf, on, source)

    def sync():
        found = [gallery.call_sync(7), gallery.call_sync(7), gallery.invalidate_sync(7), gallery.call_sync(7)]
        hf.blocking.close()
        return found

    with heard("cache.unreachable") as notes:
        assert await asyncio.to_thread(sync) == [1, 1, True, 2]
        async with hf:  # what sync code has opened is closed before
            assert await gallery(7) == (2 if on != "memory" else await gallery(7))
        assert await asyncio.to_thread(sync) == [2, 2, True, 3]
    assert notes == []


async def test_old_values_are_pruned_by_whoever_keeps_the_house(hf, on, old):
    if on != "store":
        pytest.skip("the others do so by themselves")
    assert await old(7) == 1
    async with hf.worker({"default": 1}):
        await until(lambda: _is_empty(hf))


async def _is_empty(hf):
    table = "holdfast.cache" if hf._inside.location.kind == "postgres" else "holdfast_cache"
    async with hf.transaction() as tx:
        return await tx.fetch(f"SELECT count(*) FROM {table}") == [(0,)]
