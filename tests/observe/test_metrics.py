"""What is counted is what the database has, on both stores, under names that Prometheus takes."""

from __future__ import annotations

import asyncio

import pytest
from metrics_kit import check_with_promtool, scraped
from waiting import until

from holdfast import Backoff, Cancel, Job, Reject, Snooze
from holdfast.errors import UsageError
from holdfast.kernel.telemetry import is_heard, note
from holdfast.observe import Counter, Histogram, collect_also, metrics
from holdfast.store.states import State

pytestmark = pytest.mark.usefixtures("counting")
DEFAULT = {"queue": "default"}


def declare(hf):
    seen = set()

    @hf.task(name="shop.end", retry=Backoff(attempts=3, first=0.01, ceiling=0.02))
    async def end(how: str, n: int = 0) -> None:
        first = (how, n) not in seen
        seen.add((how, n))
        if how == "dead":
            raise Reject("no")
        if how == "cancel":
            raise Cancel("gone")
        if how == "again" and first:
            raise ValueError(how)
        if how == "snooze" and first:
            raise Snooze(0.01)

    @hf.task(name="shop.commit")
    async def commit(job: Job, n: int) -> None:
        async with job.commit() as tx:
            await tx.fetch("SELECT 1")
            if n == 0:
                raise Reject("after all")

    @hf.task(name="shop.wait")
    async def wait() -> None:
        await asyncio.sleep(0.2)

    return end, commit, wait


async def over(hf):
    async def none_waits():
        return all(each.state in (State.DEAD, State.UNKNOWN) for each in await hf.queues.count())

    await until(none_waits)


async def test_claims_that_bring_jobs_are_timed(hf):
    app, (end, _, _) = metrics(hf), declare(hf)
    await end.enqueue_many([end.bind("well", n) for n in range(3)])
    async with hf.worker():
        await over(hf)
    found = await scraped(app)
    assert found.total("holdfast_job_runs_total", outcome="succeeded", **DEFAULT) == 3
    assert 1 <= found("holdfast_claim_seconds_count") <= 3, "claims that bring nothing are not counted"
    assert 0 < found("holdfast_claim_seconds_sum") < 30


async def test_runs_are_counted_as_the_database_has_them(hf):
    app, (end, commit, wait) = metrics(hf), declare(hf)
    for how, number in {"well": 7, "dead": 3, "cancel": 2, "again": 4, "snooze": 1}.items():
        await end.enqueue_many([end.bind(how, n) for n in range(number)])
    await commit.enqueue_many([commit.bind(n) for n in range(5)])
    await wait.enqueue()
    async with hf.worker():
        await over(hf)
    found = await scraped(app)
    runs = {
        outcome: found.total("holdfast_job_runs_total", task="shop.end", outcome=outcome)
        for outcome in ("succeeded", "dead", "cancelled", "failed", "snoozed")
    }
    assert runs == {"succeeded": 12, "dead": 3, "cancelled": 2, "failed": 4, "snoozed": 1}
    committed = {"queue": "default", "task": "shop.commit"}
    assert found("holdfast_job_runs_total", **committed, outcome="succeeded") == 4
    assert found("holdfast_job_runs_total", **committed, outcome="dead") == 1
    assert found("holdfast_job_run_seconds_count", **committed) == 5
    waited = {"queue": "default", "task": "shop.wait"}
    assert found("holdfast_job_run_seconds_bucket", **waited, le="0.1") == 0
    assert found("holdfast_job_run_seconds_bucket", **waited, le="+Inf") == 1
    assert found("holdfast_job_run_seconds_sum", **waited) >= 0.2
    assert found("holdfast_queue_dead_jobs", **DEFAULT) == 4
    check_with_promtool(found.text)


async def test_the_death_that_handlers_hear_of_is_counted_once(hf):
    app, told = metrics(hf), []

    @hf.task(name="shop.dies")
    async def dies() -> None:
        raise Reject("no")

    @hf.on_dead("shop.dies")
    async def on_dead(job, tx) -> None:
        told.append(job.id)

    await dies.enqueue()
    async with hf.worker():
        await over(hf)
    found = await scraped(app)
    assert len(told) == 1
    assert found("holdfast_job_runs_total", **DEFAULT, task="shop.dies", outcome="dead") == 1


async def test_the_wait_of_a_delayed_job_begins_when_it_is_due(hf):
    app, (end, *_) = metrics(hf), declare(hf)
    await end.options(delay=1.5).enqueue("well")
    async with hf.worker():
        await over(hf)
    found, labels = await scraped(app), {"queue": "default", "task": "shop.end"}
    assert found("holdfast_job_wait_seconds_count", **labels) == 1
    assert found("holdfast_job_wait_seconds_sum", **labels) < 1.5


async def test_the_figures_of_the_fleet_are_the_databases(hf):
    app, (end, *_) = metrics(hf), declare(hf)
    await end.enqueue_many([end.bind("well", n) for n in range(6)])
    await end.options(delay=600).enqueue("well")
    await end.options(queue="mail").enqueue("well")
    await hf.queues.pause("mail")
    found = await scraped(app)
    assert found("holdfast_queue_ready_jobs", **DEFAULT) == 6
    assert found("holdfast_queue_held_jobs", **DEFAULT, reason="time") == 1
    assert found("holdfast_queue_oldest_ready_seconds", **DEFAULT) >= 0
    assert found("holdfast_queue_oldest_ready_seconds", queue="mail") is None
    assert found("holdfast_queue_paused", queue="mail") == 1
    assert found("holdfast_fleet_figures_up") == 1
    await end.enqueue("well")
    again = await scraped(app)
    assert again("holdfast_queue_ready_jobs", **DEFAULT) == 6, "asked once in ten seconds for the whole fleet"
    check_with_promtool(found.text)


async def test_without_the_database_the_process_still_tells_its_own(hf, monkeypatch):
    app, (end, *_) = metrics(hf), declare(hf)
    await end.enqueue("well")
    async with hf.worker():
        await over(hf)
    await hf.store.close()
    try:
        found = await scraped(app)
    finally:
        await hf.store.open()
    assert found("holdfast_fleet_figures_up") == 0
    assert found.total("holdfast_job_runs_total") == 1


async def test_metrics_of_the_program_itself_are_shown(hf):
    from prometheus_client import CollectorRegistry
    from prometheus_client import Gauge as TheirGauge

    orders = Counter("shop_orders_total", "Orders that were placed.", ("country",))
    took = Histogram("shop_order_seconds", "How long orders took.", buckets=(0.5, 1))
    theirs = TheirGauge("shop_temperature_celsius", "How warm it is.", registry=CollectorRegistry())
    app = metrics(hf)
    collect_also(theirs)
    theirs.set(21)
    orders.add("ch")
    orders.add("ch", by=2)
    took.observe(value=0.7)
    found = await scraped(app)
    assert found("shop_orders_total", country="ch") == 3
    assert found("shop_order_seconds_bucket", le="0.5") == 0
    assert found("shop_order_seconds_bucket", le="1") == 1
    assert found("shop_temperature_celsius") == 21
    check_with_promtool(found.text)
    with pytest.raises(UsageError, match="never falls"):
        orders.add("ch", by=-1)
    with pytest.raises(UsageError, match="_total"):
        Counter("shop_orders", "Orders.")
    with pytest.raises(UsageError, match="labels"):
        orders.add()


async def test_labels_are_bounded(hf):
    app = metrics(hf)
    many = Counter("shop_many_total", "Many.", ("which",))
    for number in range(1_500):
        many.add(str(number))
    found = await scraped(app)
    assert found.total("shop_many_total") == 1_500
    assert found("shop_many_total", which="(other)") == 500
    many.add("x" * 10_000)


async def test_only_what_is_counted_is_heard(hf):
    metrics(hf)
    assert is_heard("limiter.waited")
    assert not is_heard("limiter.slowed")
    note("relay.published", count=3)
    found = await scraped(metrics(hf))
    assert found("holdfast_events_published_total") == 3
