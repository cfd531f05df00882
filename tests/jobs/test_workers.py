"""Workers: slots, drain, suspects, fair shares, recycling, and a store that fails for a while."""

from __future__ import annotations

import asyncio

import pytest
from waiting import heard, until

from holdfast import Backoff, Holdfast, Job, Middleware
from holdfast.jobs.deaths import Deaths
from holdfast.jobs.pace import Pace
from holdfast.kernel.errors import JobMissing, StoreUnavailable, UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob


@pytest.mark.parametrize("queues", [{}, {"a": 0}, {"": 1}, {"a": "ten"}, {"a": -1}, {"x" * 201: 1}])
async def test_slots_are_checked(hf, queues):
    with pytest.raises(UsageError):
        hf.worker(queues)


async def test_the_longest_name_of_a_worker_leaves_room_for_the_owners_of_locks(hf):
    @hf.task(lock="x")
    async def locked() -> int:
        return 1

    with pytest.raises(UsageError, match="too long"):
        hf.worker(name="x" * 364)
    async with hf.worker(name="x" * 363):
        assert await (await locked.enqueue()).result(10) == 1


async def test_slots_are_never_exceeded(hf):
    running = {"a": 0, "b": 0}
    most = dict(running)

    @hf.task
    async def work(queue: str) -> None:
        running[queue] += 1
        most[queue] = max(most[queue], running[queue])
        await asyncio.sleep(0.005)
        running[queue] -= 1

    async with hf.worker({"a": 3, "b": 1}):
        handles = await work.options(queue="a").enqueue_many([{"queue": "a"}] * 40)
        handles += await work.options(queue="b").enqueue_many([{"queue": "b"}] * 10)
        for handle in handles:
            await handle.result(20)
    assert most == {"a": 3, "b": 1}


async def test_a_drain_lets_jobs_end_and_puts_the_rest_back_uncharged(hf):
    started = []

    @hf.task
    async def work(seconds: float) -> None:
        started.append(seconds)
        await asyncio.sleep(seconds)

    worker = hf.worker({"default": 2}, grace=0.3)
    await worker.start()
    short, long = await work.enqueue_many([{"seconds": 0.1}, {"seconds": 60}])
    await until(lambda: len(started) == 2)
    waiting = await work.enqueue_many([{"seconds": 60}] * 3)
    await worker.stop()
    assert await short.status() == "succeeded"
    for handle in (long, *waiting):
        record = await handle.record()
        assert (record.state, record.attempt, record.interruptions, record.suspect) == ("queued", 0, 0, False)


async def test_nothing_is_claimed_after_the_drain_begins(hf):
    @hf.task
    async def work() -> None: ...

    worker = hf.worker(grace=0.2)
    await worker.start()
    stopping = asyncio.ensure_future(worker.stop())
    await asyncio.sleep(0)
    handle = await work.enqueue()
    await stopping
    assert await handle.status() == "queued"


async def test_a_suspect_runs_alone(hf):
    running, beside = set(), []

    @hf.task
    async def work(job: Job, n: int) -> None:
        running.add(n)
        if job.interruptions:
            beside.append(len(running))
        await asyncio.sleep(0.02)
        running.discard(n)

    handles = await work.enqueue_many([{"n": n} for n in range(6)])
    await hf.store.claims.claim({"default": 3}, lease=60, worker="dead")
    await hf.store.claims.rescue_worker("dead")
    async with hf.worker({"default": 10}):
        more = await work.enqueue_many([{"n": n} for n in range(6, 30)])
        for handle in [*handles, *more]:
            await handle.result(30)
    assert beside == [1, 1, 1]


async def test_on_dead_hears_of_a_job_that_killed_three_workers(hf):
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS killers (job TEXT)")
        await tx.execute("DELETE FROM killers")

    @hf.task
    async def killer() -> None: ...

    @hf.on_dead(killer)
    async def tell(job, tx):
        await tx.execute("INSERT INTO killers (job) VALUES ($1)", job.id)

    class Listener(Middleware):
        def on_dead(self, job, error):
            told.append((job.id, str(error)))

    told = []
    hf.use(Listener())
    deaths = Deaths(hf.store, hf._inside.registry, hf._inside.portal)
    handle = await killer.enqueue()
    await hf.store.claims.claim({"default": 1}, lease=60, worker="w0")
    await deaths.rescue_worker("w0")
    for n in range(1, 4):
        assert await hf.store.claims.claim_suspect(["default"], lease=60, worker=f"w{n}")
        await deaths.rescue_worker(f"w{n}")
    assert await handle.status() == "dead"
    async with hf.transaction() as tx:
        assert await tx.fetch("SELECT job FROM killers") == [(handle.id,)]
    [(job_id, why)] = told
    assert job_id == handle.id
    assert "died under it 3 times" in why


async def test_a_big_tenant_does_not_hold_up_a_small_one(hf):
    order = []

    @hf.task
    async def work(tenant: str) -> None:
        order.append(tenant)
        await asyncio.sleep(0.001)

    await work.options(tenant="big").enqueue_many([{"tenant": "big"}] * 2000)
    async with hf.worker({"default": 10}):
        await until(lambda: len(order) > 50)
        mark = len(order)
        await work.options(tenant="small").enqueue("small")
        await until(lambda: "small" in order)
        assert (
            order.index("small") - mark < 1500
        )  # what was claimed, and what was ready before it: 510 each; and what ran meanwhile


async def test_a_worker_leaves_after_its_share(hf):
    @hf.task
    async def work() -> None: ...

    handles = await work.enqueue_many([{}] * 20)
    left = asyncio.Event()
    async with hf.worker({"default": 8}) as service:
        service.worker.leave_after(5, left.set)
        await asyncio.wait_for(left.wait(), 10)
        assert service.worker.finished == 5
        assert sum([await handle.status() == "succeeded" for handle in handles]) == 5


async def test_a_store_that_fails_for_a_while(hf, monkeypatch):
    @hf.task
    async def work() -> str:
        return "done"

    claims = hf.store.claims
    failures = []

    def failing(verb):
        real = getattr(claims, verb)

        async def call(*args, **kwargs):
            if len(failures) < 6:
                failures.append(verb)
                raise StoreUnavailable("a test's fault")
            return await real(*args, **kwargs)

        return call

    for verb in ("claim", "finish", "finish_and_claim"):
        monkeypatch.setattr(claims, verb, failing(verb))
    with heard("worker.trouble") as notes:
        async with hf.worker():
            handle = await work.enqueue()
            assert await handle.result(20) == "done"
    assert len(notes) == 6


async def test_results_are_pruned_after_their_time(tmp_path):  # PostgreSQL prunes whole days
    async with Holdfast(f"sqlite:///{tmp_path / 'x.db'}") as hf:

        @hf.task
        async def work() -> None: ...

        async with hf.worker():
            handle = await work.enqueue()
            await handle.result(10)
        await hf.store.history.prune(keep=0)
        with pytest.raises(JobMissing, match="pruned"):
            await handle.result(1)


async def test_two_workers_share_the_work_and_no_job_runs_twice(url):
    runs = []
    async with Holdfast(url) as one, Holdfast(url) as two:
        for hf in (one, two):

            @hf.task(name="work")
            async def work(n: int) -> None:
                runs.append(n)

        handles = await one._inside.registry.task("work").enqueue_many([{"n": n} for n in range(500)])
        async with one.worker(), two.worker():
            for handle in handles:
                await handle.result(30)
    assert sorted(runs) == list(range(500))


def test_the_pace():
    pace = Pace(10)
    assert pace.wants(0) == 10
    pace.took(60.0)
    assert (pace.ahead, pace.wants(10)) == (0, 0)  # slow jobs are left to whoever has a slot
    quick = Pace(10)
    quick.took(0.0001)
    assert quick.ahead == 500
    assert quick.wants(300) == 210


async def test_expired_and_cancelled_jobs_are_not_run(hf):
    runs = []

    @hf.task
    async def work(n: int) -> None:
        runs.append(n)

    late = await work.options(expires=0).enqueue(1)
    gone = await work.enqueue(2)
    await gone.cancel()
    async with hf.worker():
        await (await work.enqueue(3)).result(10)
        await until(lambda: _is(late, "cancelled"))
    assert runs == [3]


async def _is(handle, state):
    return await handle.status() == state


async def test_a_worker_that_cannot_renew_stops_its_runs_before_the_lease_ends(hf, monkeypatch):
    started, stopped = asyncio.Event(), asyncio.Event()

    @hf.task(retry=Backoff(attempts=1))
    async def long() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    monkeypatch.setattr("holdfast.jobs.renewer.Renewer._renew", _unreachable)
    async with hf.worker(lease=1.5):
        handle = await long.enqueue()
        await asyncio.wait_for(started.wait(), 10)
        lease_until = (await handle.record()).lease_until
        await asyncio.wait_for(stopped.wait(), 10)
        assert lease_until > await hf.store.now()


async def _unreachable(self, store):
    raise StoreUnavailable("partitioned")


async def test_unknown_jobs_do_not_stop_the_others(hf):
    @hf.task
    async def work() -> str:
        return "done"

    await hf.store.jobs.enqueue([NewJob(id=new_id(), task="nobody") for _ in range(200)])
    async with hf.worker({"default": 5}):
        assert await (await work.enqueue()).result(10) == "done"


async def test_a_claim_that_took_most_of_its_lease_is_put_back(hf, monkeypatch):
    """It waited for a connection: a run would be stopped as soon as it begins, and charged for that."""
    claim, runs, answers = hf.store.claims.claim, [], []

    async def late(*args, **options):
        claims = await claim(*args, **options)
        if claims and not answers:
            await asyncio.sleep(1.6)
            answers.append(claims)
        return claims

    @hf.task
    async def work(job: Job) -> None:
        runs.append(job.attempt)
        await asyncio.sleep(0.5)

    monkeypatch.setattr(hf.store.claims, "claim", late)
    async with hf.worker(lease=2):
        handle = await work.enqueue()
        await handle.result(10)
    record = await handle.record()
    assert (runs, record.attempt, record.interruptions) == ([1], 1, 0)
    assert answers
