"""Guards that processes share: one rate for all, one breaker for all, and each by itself when the store is away."""

import asyncio
import itertools
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from waiting import until

from holdfast import Holdfast
from holdfast.guards import Breaker, BreakerOpen, Limiter, RateLimited
from holdfast.guards.ports import State
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import StoreUnavailable, UsageError
from holdfast.store.breakers import BreakerState


async def refuse():
    raise ConnectionRefusedError(111, "no")


async def fine():
    return "fine"


class Nodes:
    """Processes of one fleet, as far as guards can tell: each has a Holdfast of its own."""

    def __init__(self, url, **options):
        self.url, self.options = url, options
        self.stack = AsyncExitStack()
        self.all = []

    async def add(self):
        hf = Holdfast(self.url)
        guard = hf.guard("api", **{name: make() for name, make in self.options.items()})
        await self.stack.enter_async_context(hf)
        self.all.append((hf, guard))
        return hf, guard

    @property
    def guards(self):
        return [guard for _, guard in self.all]


@asynccontextmanager
async def fleet(url, number, **options):
    nodes = Nodes(url, **options)
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
async def test_together_they_are_never_above_the_rate(url, rate, burst):
    async with fleet(url, 3, limiter=lambda: Limiter(rate=rate, burst=burst)) as nodes:
        times = await calls_for(1.5, nodes.guards)
    assert worst_excess(times, rate, burst) <= 1e-6
    assert len(times) > rate * 1.5 * 0.2  # under load, and a burst of one call pays for the delays


async def test_one_alone_may_have_the_whole_rate(url):
    async with fleet(url, 3, limiter=lambda: Limiter(rate=100, burst=50)) as nodes:
        times = await calls_for(1.5, nodes.guards[:1], callers=8)
    assert len(times) > 100


async def test_a_key_of_its_own_for_each_user(url):
    async with fleet(url, 2, limiter=lambda: Limiter(rate=1, burst=1, per="user:{user}", wait=0.3)) as nodes:
        for user in range(5):
            await nodes.guards[user % 2].keyed(user).call(fine)
        with pytest.raises(RateLimited):
            await nodes.guards[1].keyed(0).call(fine)


async def test_a_call_that_is_too_costly_for_a_fleet_is_told_so(url):
    async with fleet(url, 1, limiter=lambda: Limiter(rate=10, burst=10)) as nodes:
        with pytest.raises(UsageError, match=r"at most 5\.5: the rest of burst=10 makes up for the delays"):
            await nodes.guards[0].keyed(cost=8).call(fine)


async def test_a_pause_that_one_was_asked_for_holds_for_all(url):
    async with fleet(url, 2, limiter=lambda: Limiter(rate=50, burst=50, floor=1, wait=0.1)) as nodes:
        one, other = nodes.guards
        await other.call(fine)
        one.limiter.throttled(30.0)

        async def is_refused():
            with pytest.raises(RateLimited):
                for _ in range(100):
                    await other.call(fine)
            return other.limiter.rate() < 50

        assert await until(is_refused)


async def test_it_gets_faster_again_for_all(url):
    options = {"limiter": lambda: Limiter(rate=100, burst=100, floor=1, wait=5)}
    async with fleet(url, 2, **options) as nodes:
        one, other = nodes.guards
        await one.call(fine)
        one.limiter.throttled(0.01)
        assert one.limiter.rate() == pytest.approx(50)

        async def is_fast():
            await asyncio.gather(*(guard.call(fine) for guard in (one, other)))
            return other.limiter.rate() > 90 and one.limiter.rate() > 90

        await until(is_fast)


BREAKER = {"breaker": lambda: Breaker(failures=2, cooldown=1.0, permits=1)}


async def trip(*guards):
    for guard, _ in itertools.product(guards, range(2)):
        with pytest.raises((ConnectionRefusedError, BreakerOpen)):
            await guard.call(refuse)


async def test_most_of_them_open_it_for_all_and_one_finds_out_for_all(url):
    async with fleet(url, 3, **BREAKER) as nodes:
        one, two, three = nodes.guards
        for guard in nodes.guards:
            await guard.call(fine)
        await trip(one, two)
        await until(lambda: three.breaker.state is State.OPEN)
        assert three.breaker.is_told
        with pytest.raises(BreakerOpen, match="others found"):
            await three.call(fine)

        async def is_well():
            for guard in nodes.guards:
                try:
                    await guard.call(fine)
                except BreakerOpen:
                    continue
            return all(guard.breaker.state is State.CLOSED for guard in nodes.guards)

        await until(is_well, seconds=15)


async def test_one_sick_node_stops_nobody_else(url):
    async with fleet(url, 3, **BREAKER) as nodes:
        one, two, three = nodes.guards
        for guard in nodes.guards:
            for _ in range(3):
                await guard.call(fine)
        await asyncio.sleep(1)  # until they have told each other of their calls
        for hf, _ in nodes.all:
            hf.fleet._next_report = 0.0
            hf.fleet._wake()
        await asyncio.sleep(0.3)
        await trip(one)
        await asyncio.sleep(1)
        assert await two.call(fine) == await three.call(fine) == "fine"


async def test_it_is_open_after_a_restart(url):
    async with fleet(url, 1, breaker=lambda: Breaker(failures=2, cooldown=60)) as nodes:
        await trip(*nodes.guards)
        store = nodes.all[0][0].store

        async def is_open_for_all():
            [found] = await store.guards.find()
            return found.opened_until is not None

        await until(is_open_for_all)
    async with fleet(url, 1, breaker=lambda: Breaker(failures=2, cooldown=60)) as nodes:
        with pytest.raises(BreakerOpen):
            await nodes.guards[0].call(fine)


async def test_a_person_holds_it_for_all_and_lets_go(url):
    async with fleet(url, 2, breaker=lambda: Breaker(failures=2, cooldown=0.5)) as nodes:
        guards = nodes.all[0][0].store.guards
        await guards.hold("api", BreakerState.OPEN, actor="ada")
        await until(lambda: all(guard.breaker.is_held for guard in nodes.guards), seconds=10)
        with pytest.raises(BreakerOpen, match="held open by a person"):
            await nodes.guards[1].call(fine)
        await guards.let_go("api", actor="ada")
        await until(lambda: not any(guard.breaker.is_held for guard in nodes.guards), seconds=10)
        assert await nodes.guards[1].call(fine) == "fine"


async def test_without_the_store_each_has_its_share(url, monkeypatch, notes):
    async with fleet(url, 2, limiter=lambda: Limiter(rate=40, burst=20)) as nodes:
        await calls_for(0.3, nodes.guards)
        for hf, _ in nodes.all:
            await until(lambda hf=hf: hf.fleet._slices.nodes == 2, seconds=10)

        async def away(*_, **__):
            raise StoreUnavailable("it is away")

        for hf, _ in nodes.all:
            monkeypatch.setattr(
                hf.fleet, "_shared", type("Away", (), {"take": away, "report": away, "slow": away})()
            )
        await until(lambda: all(hf.fleet._slices.is_alone for hf, _ in nodes.all), seconds=10)
        times = await calls_for(2, nodes.guards)
        assert worst_excess(times, 40, 20) <= 1e-6
        assert len(times) > 40
        assert [name for name, _ in notes].count("guards.alone") == 2
        for hf, _ in nodes.all:
            hf.fleet.meet_at(hf.store.guards)
        await until(lambda: not any(hf.fleet._slices.is_alone for hf, _ in nodes.all), seconds=10)
        assert hf.fleet.trouble() is None


async def test_two_guards_of_one_name_are_refused(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    hf.guard("api")
    with pytest.raises(UsageError, match="There is a guard 'api' already"):
        hf.guard("api")
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
