"""Schedules: one job for each nominal time, and the policy for times that were missed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from waiting import heard, until

from holdfast import Cron, Holdfast
from holdfast.jobs.schedule import Interval
from holdfast.jobs.scheduler import Scheduler
from holdfast.kernel.errors import HoldfastError, UsageError
from holdfast.kernel.world import inhabit
from holdfast.testing.clock import ManualClock

START = datetime.fromtimestamp(ManualClock().now(), UTC)


@pytest.fixture
def clock():
    with inhabit(ManualClock()) as clock:
        yield clock


@pytest.fixture
async def shop(clock, tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'x.db'}") as hf:
        yield hf


@pytest.fixture
def app_without_io():
    return Holdfast("sqlite:///never-opened.db")


def scheduler(hf):
    return Scheduler(hf.store, hf._inside.enqueuer, hf._inside.registry.schedules)


async def nominals(hf, task):
    found = await hf.store.jobs.find(task=task.name, limit=2000)
    return sorted(record.args for record in found)


async def test_a_new_schedule_begins_now(shop, clock):
    @shop.every(60)
    async def tick(nominal: datetime) -> None: ...

    mine = scheduler(shop)
    await mine.turn()
    assert await nominals(shop, tick) == []
    clock.advance(61)
    await mine.turn()
    await mine.turn()
    assert len(await nominals(shop, tick)) == 1


@pytest.mark.parametrize(("missed", "jobs"), [("latest", 1), ("all", 10), ("skip", 1)])
async def test_missed_times(shop, clock, missed, jobs):
    @shop.every(60, missed=missed)
    async def tick(nominal: datetime) -> None: ...

    mine = scheduler(shop)
    await mine.turn()
    clock.advance(60)
    await mine.turn()
    assert len(await nominals(shop, tick)) == 1
    clock.advance(600)
    await scheduler(shop).turn()
    assert len(await nominals(shop, tick)) == 1 + jobs


@pytest.mark.parametrize(("missed", "jobs"), [("latest", 1), ("all", 10), ("skip", 1)])
async def test_times_that_were_missed_before_the_first_tick(shop, clock, missed, jobs):
    @shop.every(3600, missed=missed)
    async def hourly(nominal: datetime) -> None: ...

    clock.advance(-clock.now() % 3600 + 60)
    await scheduler(shop).turn()  # a worker that knows the schedule, and dies before it fires
    clock.advance(10 * 3600 - 60)
    await scheduler(shop).turn()
    assert len(await nominals(shop, hourly)) == jobs


async def test_a_schedule_that_has_not_fired_is_long_past_all_the_same(shop, clock):
    @shop.every(3600, missed="skip")
    async def hourly() -> None: ...

    await scheduler(shop).turn()
    clock.advance(-clock.now() % 3600 + 3600 + 120)
    await scheduler(shop).turn()
    assert await nominals(shop, hourly) == []


async def test_what_is_long_past_is_skipped(shop, clock):
    @shop.cron("0 3 * * *", missed="skip")
    async def nightly() -> None: ...

    mine = scheduler(shop)
    await mine.turn()
    clock.advance(86_400)
    await mine.turn()
    before = len(await nominals(shop, nightly))
    clock.advance(3 * 86_400)
    await scheduler(shop).turn()
    assert len(await nominals(shop, nightly)) == before


async def test_a_year_of_minutes_is_caught_up_at_once(shop, clock):
    @shop.cron("* * * * *")
    async def minutely(nominal: datetime) -> None: ...

    mine = scheduler(shop)
    await mine.turn()
    clock.advance(60)
    await mine.turn()
    clock.advance(366 * 86_400)
    began = asyncio.get_running_loop().time()
    await scheduler(shop).turn()
    assert asyncio.get_running_loop().time() - began < 1
    assert len(await nominals(shop, minutely)) == 2


async def test_one_that_fails_does_not_starve_the_others(shop, clock, monkeypatch):
    @shop.every(60)
    async def bad() -> None: ...

    @shop.every(60)
    async def good(nominal: datetime) -> None: ...

    mine = scheduler(shop)
    await mine.turn()
    clock.advance(61)
    build = shop._inside.enqueuer.build

    def fail(task, *others):
        if task.name == bad.name:
            raise ValueError("no arguments today")
        return build(task, *others)

    monkeypatch.setattr(shop._inside.enqueuer, "build", fail)
    with heard("scheduler.failed") as failed:
        assert await mine.turn() < 2
    assert [note["schedule"] for note in failed] == [bad.name]
    assert "no arguments today" in mine.trouble()
    assert len(await nominals(shop, good)) == 1
    monkeypatch.undo()
    await mine.turn()
    assert len(await nominals(shop, bad)) == 1  # made up for


async def test_a_time_with_too_many_waiting_is_passed_over(shop, clock):
    @shop.every(60, max_waiting=1, missed="all")
    async def slow(nominal: datetime) -> None: ...

    @shop.every(60)
    async def other(nominal: datetime) -> None: ...

    mine = scheduler(shop)
    await mine.turn()
    clock.advance(61)
    await mine.turn()
    clock.advance(60)
    with heard("schedule.passed_over") as passed, heard("scheduler.failed") as failed:
        await mine.turn()
        await mine.turn()
    assert ([note["schedule"] for note in passed], failed) == ([slow.name], [])
    assert (len(await nominals(shop, slow)), len(await nominals(shop, other))) == (1, 2)


async def test_a_running_scheduler_goes_on_after_the_reset_for_a_wrong_clock(shop, clock):
    @shop.every(60)
    async def tick(nominal: datetime) -> None: ...

    mine, years = scheduler(shop), 10 * 365 * 86_400
    await mine.turn()
    clock.advance(years)
    await mine.turn()
    clock.advance(-years)
    await mine.turn()
    assert await shop.store.schedules.reset(tick.name, actor="ada")
    await mine.turn()
    clock.advance(61)
    await mine.turn()
    assert len(await nominals(shop, tick)) == 2  # that of the wrong clock, and the one that is due


async def test_many_schedulers_enqueue_one_job(url):
    apps = []
    for _ in range(4):
        hf = await Holdfast(url).__aenter__()

        @hf.every(1, name="tick")
        async def tick(nominal: datetime) -> None: ...

        apps.append(hf)
    schedulers = [scheduler(hf) for hf in apps]
    for mine in schedulers:
        await mine.turn()

    async def fired():
        await asyncio.gather(*(mine.turn() for mine in schedulers))
        return len(await nominals(apps[0], tick)) >= 2

    await until(fired)
    times = await nominals(apps[0], tick)
    assert len(set(times)) == len(times)
    for hf in apps:
        await hf.__aexit__(None, None, None)


async def test_a_worker_is_a_scheduler(hf):
    fired = []

    @hf.every(1)
    async def tick() -> None:
        fired.append(1)

    async with hf.worker():
        await until(lambda: len(fired) >= 2)


def test_the_next_ten():
    cron = Cron("30 2 * * *", tz="Europe/Zurich")
    begin = datetime(2026, 3, 28, tzinfo=UTC)
    found = cron.between(begin, begin + timedelta(days=3))
    assert [moment.isoformat() for moment in found] == [
        "2026-03-28T01:30:00+00:00",
        "2026-03-29T01:00:00+00:00",  # 02:30 is skipped that night: once, at the gap's end
        "2026-03-30T00:30:00+00:00",
    ]
    assert [moment.timestamp() for moment in Interval(30).fires(begin, begin + timedelta(minutes=1))] == [
        begin.timestamp() + 30,
        begin.timestamp() + 60,
    ]


async def test_one_task_has_several_schedules_with_arguments_of_their_own(shop, clock):
    @shop.every(60, schedule="minutes", arguments={"kind": "small"})
    @shop.every(3600, schedule="hours", arguments={"kind": "large"})
    @shop.task
    async def report(kind: str, nominal: datetime) -> None: ...

    assert list(shop._inside.registry.schedules) == ["hours", "minutes"]
    mine = scheduler(shop)
    await mine.turn()
    clock.advance(3600)
    await mine.turn()
    await mine.turn()
    found = await nominals(shop, report)
    assert ['"large"' in each for each in found] == [True, False]


def test_two_schedules_of_one_name_are_refused(app_without_io):
    @app_without_io.every(60)
    async def tick() -> None: ...

    with pytest.raises(UsageError, match=r"Two schedules are called .* a name of its own: schedule="):
        app_without_io.every(30)(tick)
    with pytest.raises(UsageError, match="Two schedules are called"):
        app_without_io.every(60)(tick)


def test_a_reload_with_other_times_is_refused(app_without_io):
    def declare(times):
        @times
        async def tick() -> None: ...

    declare(app_without_io.every(60, name="tick"))
    declare(app_without_io.every(60, name="tick"))
    assert list(app_without_io._inside.registry.schedules) == ["tick"]
    for other in (app_without_io.every(61, name="tick"), app_without_io.cron("* * * * *", name="tick")):
        with pytest.raises(UsageError, match="Two schedules are called"):
            declare(other)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "has no value for kind of"),
        ({"kind": 5}, "Expected `str`, got `int`"),
        ({"kind": "small", "colour": "red"}, "colour"),
        ([1], r'arguments is a dict of values by name, such as {"days": 7}; not \[1\]'),
    ],
)
def test_the_arguments_of_a_schedule_are_checked_when_it_is_declared(app_without_io, arguments, words):
    @app_without_io.task
    async def report(kind: str) -> None: ...

    with pytest.raises(HoldfastError, match=words):
        app_without_io.every(60, arguments=arguments)(report)
    assert not app_without_io._inside.registry.schedules


@pytest.mark.parametrize("option", ["unique", "ordered", "tenant", "concurrency", "lock"])
@pytest.mark.parametrize(
    ("text", "words"), [("x:{size}", "needs 'size' as text"), ("{name}", "must not be empty")]
)
def test_the_keys_of_a_scheduled_task_are_checked_when_it_is_declared(app_without_io, option, text, words):
    @app_without_io.task(**{option: (text, 1) if option == "concurrency" else text})
    async def report(size: float = 1.5, name: str = "") -> None: ...

    with pytest.raises(UsageError, match=words):
        app_without_io.every(60)(report)
    assert not app_without_io._inside.registry.schedules


def test_keys_may_name_the_nominal_time(app_without_io):
    @app_without_io.every(60, unique="{nominal}", lock="report:{days}", arguments={"days": 7})
    async def report(days: int, nominal: datetime) -> None: ...

    assert list(app_without_io._inside.registry.schedules) == [report.name]


def test_a_task_of_another_program_is_refused(app_without_io):
    other = Holdfast("sqlite:///never-opened-either.db")

    async def tick() -> None: ...

    task = other.task(tick)
    for _ in range(2):  # also when it has a task of that name itself
        with pytest.raises(
            UsageError, match=r"of another Holdfast.*Schedule it with the Holdfast that declares it"
        ):
            app_without_io.every(60)(task)
        assert not app_without_io._inside.registry.schedules
        app_without_io.task(tick)
