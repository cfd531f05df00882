"""`guard=` of a step in `drain`: who is refused is held, and goes on when the clock says that it may."""

import pytest
from clock_kit import Service

from holdfast import Job
from holdfast.guards import Breaker, Guard, Limiter
from holdfast.store.states import Held
from holdfast.testing import drain

pytest_plugins = ["holdfast_pytest"]


@pytest.mark.parametrize("is_shared", [True, False], ids=["fleet", "alone"])
async def test_jobs_go_on_at_the_rate_of_their_step(hf, clock, is_shared):
    make = hf.guard if is_shared else Guard
    guard, service = make("api", limiter=Limiter(rate=1, burst=2, per="{user}")), Service(clock)

    @hf.task
    async def work(job: Job, user: str) -> int:
        one = await job.step("one", service.call, 1, guard=guard.keyed(user))
        two = await job.effect("two", service.call, 2, policy="at_most_once", guard=guard.keyed(user))
        return one + two

    for user in ("ada", "ada", "bob"):
        await work.enqueue(user)
    done = []
    for _ in range(6):
        drained = await drain(hf)
        done += [each for each in drained if each.result is not None]
        if not drained.held:
            break
        assert {each.held for each in drained.held} == {Held.GUARD}
        assert "by guard 'api/ada'" in repr(drained) or "by guard 'api/bob'" in repr(drained)
        clock.advance(1.1)
    assert [each.result for each in done] == [5, 5, 5]
    assert {each.attempt for each in done} == {1}
    assert len(service.calls) == 6
    assert 1.0 < clock.monotonic() < 4


async def test_an_open_breaker_holds_until_its_time_is_over(hf, clock):
    guard, service = hf.guard("api", breaker=Breaker(failures=1, cooldown=30)), Service(clock)

    @hf.task
    async def work(job: Job) -> int:
        return await job.effect("one", service.call, 1, policy="at_most_once", guard=guard)

    with pytest.raises(ConnectionError), guard.breaker:
        raise ConnectionError
    await work.enqueue()
    drained = await drain(hf)
    assert (drained.held[0].held, service.calls) == (Held.GUARD, [])
    assert "by guard 'api'" in repr(drained)
    assert "by guard 'api'" in repr(await drain(hf))
    clock.advance(40)
    [ran] = await drain(hf)
    assert (ran.result, ran.attempt) == (2, 1)
