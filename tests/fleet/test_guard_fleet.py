"""Guards that processes share: one rate for all, one breaker for all, and each by itself when the store is away."""

import asyncio
import itertools
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from redis.asyncio import Redis
from waiting import until

from holdfast import Holdfast
from holdfast.guards import Breaker, BreakerOpen, Limiter, RateLimited
from holdfast.guards.ports import State
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import StoreUnavailable, UsageError
from holdfast.store.breakers import BreakerReport, BreakerState
from holdfast.store.quota import Return, Want
from holdfast.store.sqlite.guards import Guards


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def place(request, tmp_path):
    """Where the work is stored, and where guards meet when that is another place."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url"), None
    redis = request.getfixturevalue("own_valkey").url if request.param == "redis" else None
    return f"sqlite:///{tmp_path / 'jobs.db'}", redis


async def refuse():
    raise ConnectionRefusedError(111, "no")


async def fine():
    return "fine"


class Nodes:
    """Processes of one fleet, as far as guards can tell: each has a Holdfast of its own."""

    def __init__(self, place, **options):
        self.place, self.options = place, options
        self.stack = AsyncExitStack()
        self.all = []

    async def add(self):
        hf = Holdfast(self.place[0], guards=self.place[1])
        guard = hf.guard("api", **{name: make() for name, make in self.options.items()})
        await self.stack.enter_async_context(hf)
        self.all.append((hf, guard))
        return hf, guard

    def look(self):
        """Let each tell and hear now, instead of in a second or three."""
        for hf, _ in self.all:
            hf._inside.fleet.changed("api", None)
        return True

    @property
    def guards(self):
        return [guard for _, guard in self.all]


@asynccontextmanager
async def fleet(place, number, **options):
    nodes = Nodes(place, **options)
    async with nodes.stack:
        for _ in range(number):
            await nodes.add()
        yield nodes


def worst_excess(times, rate, burst):
    """By how many calls the busiest window was above rate · T + burst."""
    return max(
        (last - first + 1) - (rate * (times[last] - times[first]) + burst)
        for first in range(len(times))
        for last in range(first, len(times))
    )


async def calls_for(seconds, guards, callers=4):
    times, end = [], monotonic() + seconds

    async def call():
        times.append(monotonic())

    async def caller(guard):
        while monotonic() < end:
            await guard.call(call)

    await asyncio.gather(*(caller(guard) for guard in guards for _ in range(callers)))
    return sorted(times)


@pytest.mark.parametrize(("rate", "burst"), [(100, 60), (30, 1), (400, 400)])
async def test_together_they_are_never_above_the_rate(place, rate, burst, notes):
    async with fleet(place, 3, limiter=lambda: Limiter(rate=rate, burst=burst)) as nodes:
        times = await calls_for(1.5, nodes.guards)
    late = {"guards.late", "guards.alone"} & {name for name, _ in notes}
    assert worst_excess(times, rate, burst) <= (beside_the_store(rate) if late else 1e-6)
    assert len(times) > rate * 1.5 * 0.2  # under load, and a burst of one call pays for the delays


def beside_the_store(rate):
    """By how much three may be above it when the store answers too late: a share is one call at least, so two; and while two have
    shares and one its grants, they have together a little more than the rate."""
    return 2 + rate * 0.1


async def test_when_the_store_is_late_they_count_each_other_before_they_share(tmp_path, monkeypatch):
    """The first knew of itself only, the second of two: together they made almost twice as many calls."""
    original = Guards.take

    async def late(self, wants):
        found = await original(self, wants)
        await asyncio.sleep(0.1)  # a burst of one call has 0.05
        return found

    monkeypatch.setattr(Guards, "take", late)
    place = f"sqlite:///{tmp_path / 'jobs.db'}", None
    async with fleet(place, 3, limiter=lambda: Limiter(rate=30, burst=1)) as nodes:
        times = await calls_for(1.5, nodes.guards)
    assert worst_excess(times, 30, 1) <= beside_the_store(30)
    assert len(times) > 10


async def test_two_versions_of_a_program_with_different_rates_both_get_on(place):
    """While a new one is deployed: the older, with the smaller burst, would find the bucket full for ever."""
    rates = iter([(20, 10), (200, 200)])

    def limiter():
        rate, burst = next(rates)
        return Limiter(rate=rate, burst=burst)

    async with fleet(place, 2, limiter=limiter) as nodes:
        old, new = nodes.guards
        times = await asyncio.gather(calls_for(2, [old], callers=2), calls_for(2, [new], callers=16))
    assert len(times[0]) >= 8
    assert len(times[1]) >= 40
    assert worst_excess(times[0], 20, 10) <= 1  # a call is made a moment after it was admitted
    assert worst_excess(sorted(times[0] + times[1]), 200, 200) <= 1e-6


async def test_one_alone_may_have_the_whole_rate(place):
    async with fleet(place, 3, limiter=lambda: Limiter(rate=100, burst=50)) as nodes:
        times = await calls_for(1.5, nodes.guards[:1], callers=8)
    assert len(times) > 100


async def test_a_key_of_its_own_for_each_user(place):
    async with fleet(place, 2, limiter=lambda: Limiter(rate=1, burst=1, per="user:{user}")) as nodes:
        async with asyncio.timeout(4):  # five users would wait longer for one rate
            await asyncio.gather(*(nodes.guards[user % 2].keyed(user).call(fine) for user in range(5)))
        assert not nodes.guards[1].limiter.try_take(key="user:0")


async def test_a_call_that_is_too_costly_for_a_fleet_is_told_so(place):
    async with fleet(place, 1, limiter=lambda: Limiter(rate=10, burst=10)) as nodes:
        with pytest.raises(UsageError, match=r"at most 5\.5: the rest of burst=10 makes up for the delays"):
            await nodes.guards[0].keyed(cost=8).call(fine)


async def test_a_pause_that_one_was_asked_for_holds_for_all(place):
    async with fleet(place, 2, limiter=lambda: Limiter(rate=50, burst=50, floor=1, wait=0.1)) as nodes:
        one, other = nodes.guards
        await other.call(fine)
        one.limiter.throttled(30.0)

        async def is_refused():
            with pytest.raises(RateLimited):
                for _ in range(100):
                    await other.call(fine)
            return other.limiter.rate() < 50

        assert await until(is_refused)


async def test_it_gets_faster_again_for_all(place):
    options = {"limiter": lambda: Limiter(rate=100, burst=100, floor=1, wait=5)}
    async with fleet(place, 2, **options) as nodes:
        one, other = nodes.guards
        await one.call(fine)
        one.limiter.throttled(0.01)
        assert one.limiter.rate() == pytest.approx(50)

        async def is_fast():
            await asyncio.gather(*(guard.call(fine) for guard in (one, other)))
            return other.limiter.rate() > 90 and one.limiter.rate() > 90

        await until(is_fast)


@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("ends", ["lapses", "leaves"])
async def test_what_one_does_not_use_is_for_the_others(place, ends):
    async with fleet(place, 2, limiter=lambda: Limiter(rate=1, burst=100)) as nodes:
        (one, guard), (other, _) = nodes.all
        assert not any(guard.limiter.try_take() for _ in range(40))  # in vain, but so much is asked for
        await until(
            lambda: sum(lot.units for pot in one._inside.fleet._slices.pots for lot in pot._lots) >= 30
        )
        if ends == "leaves":
            await one._inside.fleet.stop()
        await until(lambda: _granted(other._inside.fleet._shared, 75, 1.0), seconds=8)


async def _granted(shared, units, rate):
    """Whether so much could be had of the bucket now; then it is put back."""
    [grant] = await shared.take([Want("api", "", units, units, rate, 99)])
    if grant.units:
        await shared.give_back([Return(grant, grant.units)])
    return grant.units > 0


BREAKER = {"breaker": lambda: Breaker(failures=2, cooldown=1.0, permits=1)}


async def trip(*guards):
    for guard, _ in itertools.product(guards, range(2)):
        with pytest.raises((ConnectionRefusedError, BreakerOpen)):
            await guard.call(refuse)


async def test_most_of_them_open_it_for_all_and_one_finds_out_for_all(place):
    async with fleet(place, 3, **BREAKER) as nodes:
        one, two, three = nodes.guards
        for guard in nodes.guards:
            await guard.call(fine)
        await trip(one, two)
        await until(lambda: nodes.look() and three.breaker.state is State.OPEN)
        assert three.breaker.is_told
        with pytest.raises(BreakerOpen, match="others found"):
            await three.call(fine)

        async def is_well():
            nodes.look()
            for guard in nodes.guards:
                try:
                    await guard.call(fine)
                except BreakerOpen:
                    continue
            return all(guard.breaker.state is State.CLOSED for guard in nodes.guards)

        await until(is_well, seconds=15)


async def test_failures_within_a_window_open_it_for_all_whatever_succeeds_between(place):
    options = {"breaker": lambda: Breaker(failures=3, window=60, cooldown=60)}
    async with fleet(place, 3, **options) as nodes:
        one, two, three = nodes.guards
        await three.call(fine)
        for guard, _ in itertools.product((one, two), range(3)):
            await guard.call(fine)
            with pytest.raises(ConnectionRefusedError):
                await guard.call(refuse)
        assert one.breaker.state is two.breaker.state is State.OPEN
        await until(lambda: nodes.look() and three.breaker.state is State.OPEN)
        assert three.breaker.is_told


async def test_one_sick_node_stops_nobody_else(place):
    async with fleet(place, 3, **BREAKER) as nodes:
        one, two, three = nodes.guards
        for guard in nodes.guards:
            for _ in range(3):
                await guard.call(fine)
        for _ in range(2):  # until they have told each other of their calls
            nodes.look()
            await asyncio.sleep(0.3)
        await trip(one)
        nodes.look()
        await asyncio.sleep(0.5)
        assert await two.call(fine) == await three.call(fine) == "fine"


async def test_it_is_open_after_a_restart(place):
    async with fleet(place, 1, breaker=lambda: Breaker(failures=2, cooldown=60)) as nodes:
        await trip(*nodes.guards)
        shared = nodes.all[0][0]._inside.fleet._shared

        async def is_open_for_all():
            [found] = await shared.report("someone", [BreakerReport("api", BreakerState.CLOSED)], ttl=1)
            return found.open_for > 0

        await until(is_open_for_all)
    async with fleet(place, 1, breaker=lambda: Breaker(failures=2, cooldown=60)) as nodes:
        with pytest.raises(BreakerOpen):
            await nodes.guards[0].call(fine)


async def test_a_person_holds_it_for_all_and_lets_go(place):
    async with fleet(place, 2, breaker=lambda: Breaker(failures=2, cooldown=0.5)) as nodes:
        guards = nodes.all[0][0].store.guards
        await guards.hold("api", BreakerState.OPEN, actor="ada")
        await until(lambda: nodes.look() and all(guard.breaker.is_held for guard in nodes.guards), seconds=10)
        with pytest.raises(BreakerOpen, match="held open by a person"):
            await nodes.guards[1].call(fine)
        await guards.let_go("api", actor="ada")
        await until(
            lambda: nodes.look() and not any(guard.breaker.is_held for guard in nodes.guards), seconds=10
        )
        assert await nodes.guards[1].call(fine) == "fine"


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
async def test_without_the_store_each_has_its_share(place, monkeypatch, notes):
    async with fleet(place, 2, limiter=lambda: Limiter(rate=40, burst=20)) as nodes:
        await calls_for(0.3, nodes.guards)
        for hf, _ in nodes.all:
            await until(lambda hf=hf: nodes.look() and hf._inside.fleet._slices.nodes == 2, seconds=10)

        async def away(*_, **__):
            raise StoreUnavailable("it is away")

        for hf, _ in nodes.all:
            monkeypatch.setattr(
                hf._inside.fleet, "_shared", type("Away", (), {"take": away, "report": away, "slow": away})()
            )
        await until(
            lambda: nodes.look() and all(hf._inside.fleet._slices.is_alone for hf, _ in nodes.all), seconds=10
        )
        times = await calls_for(2, nodes.guards)
        assert worst_excess(times, 40, 20) <= 1e-6
        assert len(times) > 40
        assert [name for name, _ in notes].count("guards.alone") == 2
        for hf, _ in nodes.all:
            hf._inside.fleet.meet_at(hf._inside.guards_elsewhere or hf.store.guards)
        await until(lambda: not any(hf._inside.fleet._slices.is_alone for hf, _ in nodes.all), seconds=10)
        assert hf._inside.fleet.trouble() is None


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
async def test_many_keys_and_bad_ones_part_nobody_from_the_fleet(place):
    async with fleet(place, 1, limiter=lambda: Limiter(rate=1000, burst=1000, keys=5000)) as nodes:
        [(hf, guard)] = nodes.all
        for key in ("a\0b", "x" * 5000):
            with pytest.raises(UsageError):
                guard.limiter.try_take(key=key)
        await asyncio.gather(*(guard.limiter.take(key=f"user:{number}") for number in range(1100)))
        await until(lambda: hf._inside.fleet.trouble() is None)


@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
async def test_a_reset_lifts_what_was_slowed_and_opened(place):
    options = {
        "limiter": lambda: Limiter(rate=50, burst=50, floor=1, wait=0.1),
        "breaker": lambda: Breaker(failures=2, cooldown=60),
    }
    async with fleet(place, 2, **options) as nodes:
        one, two = nodes.guards
        guards = nodes.all[0][0].store.guards

        async def is_known():
            nodes.look()
            [found] = await guards.find()
            return found.paused > 0 and found.opened_until is not None

        await trip(two)
        one.limiter.throttled(60.0)
        await until(is_known)
        assert await guards.reset("api", actor="ada")

        async def is_well():
            nodes.look()
            try:
                return await one.call(fine) == await two.call(fine) == "fine"
            except (RateLimited, BreakerOpen):
                return False

        await until(is_well)
        await asyncio.sleep(0.5)
        await until(is_well)  # nobody has brought it back; a busy machine may be late with quota once


async def test_two_limiters_of_one_name_are_refused(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(UsageError, match="another limiter named 'shared'"):
        hf.guard("b", limiter=Limiter(rate=1, name="shared"))
        hf.guard("c", limiter=Limiter(rate=1, name="shared"))


async def test_a_guard_works_before_its_holdfast_is_entered_and_after_it_is_left(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    guard = hf.guard("api", limiter=Limiter(rate=1000, burst=5), breaker=Breaker(failures=2))
    assert await guard.call(fine) == "fine"
    async with hf:
        assert await guard.call(fine) == "fine"
    assert await guard.call(fine) == "fine"


async def test_a_redis_that_is_gone_stops_nobody_and_is_found_again(tmp_path, own_valkey, notes):
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with fleet((url, own_valkey.url), 2, limiter=lambda: Limiter(rate=50, burst=20)) as nodes:
        await until(lambda: nodes.look() and all(hf._inside.fleet._slices.nodes == 2 for hf, _ in nodes.all))
        own_valkey.kill()
        times = await calls_for(3, nodes.guards)
        assert worst_excess(times, 50, 20) <= 1e-6
        assert len(times) > 50
        assert "guards.alone" in [name for name, _ in notes]
        own_valkey.start()
        await until(lambda: not any(hf._inside.fleet.trouble() for hf, _ in nodes.all))
        times = await calls_for(1, nodes.guards)
        assert worst_excess(times, 50, 20) <= 1e-6


async def test_a_redis_that_is_not_there_at_the_start(tmp_path, own_valkey):
    own_valkey.kill()
    async with fleet(
        (f"sqlite:///{tmp_path / 'x.db'}", own_valkey.url), 1, limiter=lambda: Limiter(rate=50)
    ) as nodes:
        assert await nodes.guards[0].call(fine) == "fine"
        assert "on their own" in nodes.all[0][0]._inside.fleet.trouble()


async def test_a_flushed_redis_gives_nobody_more(tmp_path, own_valkey):
    """Row 43: what is forgotten is built anew, and no window has more than the rate and the burst."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with fleet((url, own_valkey.url), 3, limiter=lambda: Limiter(rate=60, burst=40)) as nodes:
        client = Redis.from_url(own_valkey.url)

        async def flush():
            for _ in range(6):
                await asyncio.sleep(0.4)
                await client.flushall()

        flushing = asyncio.create_task(flush())
        times = await calls_for(3, nodes.guards)
        await flushing
        await client.aclose()
    assert worst_excess(times, 60, 40) <= 1e-6
    assert len(times) > 20


def test_what_names_no_redis_is_refused():
    with pytest.raises(
        UsageError, match=r"guards names a Redis, such as redis://localhost:6379/0; got 'http://x'"
    ):
        Holdfast("sqlite:///x.db", guards="http://x")
