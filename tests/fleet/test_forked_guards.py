"""A forked child is another process: what its parent was granted is not its own, and it is another node."""

import asyncio

import pytest
from running import in_child
from waiting import until

from holdfast import Holdfast
from holdfast.guards import Breaker, Limiter

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


async def taken(guard, key=""):
    return sum(guard.limiter.try_take(key=key) for _ in range(100))


async def test_a_child_does_not_spend_what_its_parent_was_granted(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    guard = hf.guard("api", limiter=Limiter(rate=20, burst=40), breaker=Breaker(failures=3))
    async with hf:

        async def has_slices():
            guard.limiter.try_take()
            return sum(lot.units for pot in hf._inside.fleet._slices.pots for lot in pot._lots) > 3

        await until(has_slices)
        node = hf._inside.fleet.node
        assert in_child(lambda: taken(guard)) == "0"

        async def looks():
            return hf._inside.fleet.node == node, hf._inside.fleet._slices.nodes, hf._inside.fleet.trouble()

        assert in_child(looks) == "(False, 2, None)"
        assert (hf._inside.fleet.node, hf._inside.fleet._slices.nodes) == (node, 1)


async def test_a_child_may_enter_and_is_a_node_of_its_own(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    hf = Holdfast(url)
    guard = hf.guard("api", limiter=Limiter(rate=50, burst=50))

    async def calls():
        mine = Holdfast(url)
        limiter = Limiter(rate=50, burst=50)
        mine.guard("api", limiter=limiter)
        async with asyncio.timeout(10), mine:
            await limiter.take()
            return len(await mine.store.guards.find()), (await mine.store.guards.find())[0].nodes_number

    async with hf:
        await guard.limiter.take()
        assert in_child(calls) == "(1, 2)"


async def test_a_lock_that_another_thread_held_is_free_in_the_child(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    guard = hf.guard("api", limiter=Limiter(rate=50, burst=50), breaker=Breaker(failures=3))

    async def calls():
        guard.breaker.admit().record()
        return guard.limiter.try_take()

    async with hf:
        with guard.limiter._lock, guard.breaker._lock, hf._inside.fleet._slices._lock:
            assert in_child(calls) == "False"
