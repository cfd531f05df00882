"""A task in a process of its own: results, failures, crashes, timeouts."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import until

from holdfast import Holdfast, Job
from holdfast.guards import BreakerOpen, deadline
from holdfast.kernel.context import within
from holdfast.kernel.errors import JobCancelled, JobDead, UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.states import Held


@pytest.fixture
async def shop(tmp_path, monkeypatch):
    monkeypatch.setenv("OWN_PROCESS_URL", f"sqlite:///{tmp_path / 'x.db'}")
    monkeypatch.syspath_prepend(Path(__file__).parent)
    import own_process

    module = importlib.reload(own_process)
    async with module.hf:
        yield module


async def test_results_come_back(shop):
    async with shop.hf.worker():
        found = await (await shop.where.enqueue(5)).result(20)
        assert found["n"] == 5
        assert found["pid"] != os.getpid()
        assert await (await shop.gently.enqueue(1)).result(20) == 2


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("segfault", r"ended with signal 11"),
        ("exit", "ended with exit code 9"),
        ("raise", r"ValueError: bad \*\*\*"),
        ("sysexit", "SystemExit: 4"),
        ("base", r"Base: \*\*\*"),
    ],
)
async def test_whatever_happens_there_only_the_job_is_dead(shop, how, words):
    async with shop.hf.worker():
        with pytest.raises(JobDead, match=words):
            await (await shop.crash.enqueue(how, "hunter2")).result(20)
        assert await (await shop.gently.enqueue(1)).result(20) == 2


async def test_it_belongs_to_the_story_of_its_job(shop):
    """As in the worker's own process: what it enqueues can be traced back."""
    story = {"correlation_id": "order 7", "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    with within(**story, job_id=new_id()) as around:
        handles = [await task.enqueue() for task in (shop.tell_story, shop.tell_story_gently)]
    async with shop.hf.worker():
        for handle in handles:
            told = await handle.result(20)
            expected = {
                **story,
                "causation_id": around.job_id,
                "deadline": None,
                "job_id": handle.id,
                "tenant": None,
            }
            assert told["context"] == expected
            if "follower" in told:
                follower = await shop.hf.jobs.get(told["follower"])
                assert (follower.correlation_id, follower.causation_id) == ("order 7", handle.id)
                assert follower.trace == story["trace"]


async def test_it_is_killed_at_its_timeout(shop):
    async with shop.hf.worker():
        with pytest.raises(JobDead, match="took longer than its timeout of 1 s"):
            await (await shop.hang.enqueue()).result(20)


async def test_control_exceptions_cross_over(shop):
    async with shop.hf.worker():
        handles = {
            how: await shop.control.enqueue(how) for how in ("retry", "snooze", "cancel", "reject", "never")
        }
        with pytest.raises(JobDead):
            await handles["retry"].result(20)
        assert (await handles["retry"].record()).attempt == 2
        with pytest.raises(JobCancelled, match="gone"):
            await handles["cancel"].result(20)
        for how in ("reject", "never"):
            with pytest.raises(JobDead):
                await handles[how].result(20)
            assert (await handles[how].record()).attempt == 1

        async def snoozed():
            record = await handles["snooze"].record()
            return record.held is Held.TIME and record.attempt == 0

        await until(snoozed)


async def test_what_it_has_started_ends_with_it(shop, tmp_path):
    async with shop.hf.worker():
        with pytest.raises(JobDead, match="took longer than its timeout"):
            await (await shop.have_children.enqueue(str(tmp_path))).result(40)
    pid = int((tmp_path / "pid").read_text())
    await until(lambda: is_over(pid))


async def test_a_fork_that_it_leaves_keeps_nobody_waiting(shop):
    async with shop.hf.worker():
        pid = await (await shop.leave_a_fork.enqueue()).result(20)
    await until(lambda: is_over(pid))


async def test_nobody_outlives_a_worker_that_was_killed(shop, tmp_path):
    """Else they would do a second time what the next run of the job does."""
    command = [sys.executable, "-m", "holdfast", "worker", "own_process:hf"]
    worker = subprocess.Popen(command, cwd=Path(__file__).parent)
    try:
        await shop.stay.enqueue(str(tmp_path))
        await until((tmp_path / "pids").exists, 20)
    finally:
        worker.kill()
        worker.wait()
    for pid in (tmp_path / "pids").read_text().split():
        await until(lambda pid=pid: is_over(int(pid)))


@pytest.mark.parametrize("how", ["big", "wrong"])
async def test_a_result_that_cannot_be_kept_is_not_tried_again(shop, how):
    async with shop.hf.worker():
        handle = await shop.unfit.enqueue(how)
        with pytest.raises(JobDead, match="its result cannot be kept"):
            await handle.result(20)
        assert (await handle.record()).attempt == 1


async def test_its_function_may_stand_there_undecorated(shop):
    async with shop.hf.worker():
        assert await (await shop.renamed.enqueue(4)).result(20) == 8


async def test_a_task_that_is_declared_elsewhere_is_told_so(shop):
    task = shop.hf.task(process=True, name="elsewhere")(is_over)
    async with shop.hf.worker():
        with pytest.raises(JobDead, match="found no task 'elsewhere'"):
            await (await task.enqueue(1)).result(20)


async def is_over(pid: int) -> bool:
    """Gone, or a zombie that nobody has asked after."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_what_cannot_move_there_is_refused(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")

    def local() -> None: ...

    with pytest.raises(UsageError, match="top of its module"):
        hf.task(process=True)(local)

    with pytest.raises(UsageError, match="cannot take the running job"):
        hf.task(process=True)(with_job)
    assert hf._inside.registry.names == []


def with_job(job: Job) -> None: ...


# --- guards: those of the worker ---


async def test_what_it_calls_is_metered_by_the_workers_guard(shop):
    """The gate takes quota for the run, and its first call spends that, wherever it is made, unless a start takes long."""
    async with shop.hf.worker():
        assert await (await shop.ask_twice.enqueue()).result(30) == ["one", "two"]
        assert 16.5 < shop.api.limiter.allowance().remaining < 18.5
        assert shop.api.breaker.calls == 2
        assert shop.api.bulkhead.in_flight == 0
        shop.api.limiter.throttled(60)
        handle = await shop.ask.enqueue("fine")
        await until(lambda: shop.hf.store.holds.gates())
        assert (await handle.record()).attempt == 0


async def test_a_failure_there_is_one_for_the_workers_breaker(shop):
    shop.api.limiter.reset()
    async with shop.hf.worker():
        handle = await shop.ask.enqueue("down")
        await until(lambda: shop.api.breaker.calls == 2, seconds=30)
        await until(lambda: _is(handle, "dead"), seconds=30)
    assert shop.api.breaker.generation > 1
    assert "ConnectionError: down" in (await handle.record()).reason


async def _is(handle, state):
    return (await handle.record()).state == state


async def test_whom_the_guard_refuses_there_is_not_charged(shop):
    shop.api.breaker.hold_open()
    with pytest.raises(BreakerOpen):
        await shop.api.call(shop._answer, "fine")
    async with shop.hf.worker():
        handle = await shop.die_inside.enqueue("/nowhere")
        await until(lambda: _is_put_off(handle), seconds=30)
    assert (await handle.record()).attempt == 0


async def _is_put_off(handle):
    return (await handle.record()).held is Held.TIME


async def test_who_is_told_there_to_come_later_is_not_charged(shop):
    async with shop.hf.worker():
        handle = await shop.ask_later.enqueue()
        await until(lambda: _is_put_off(handle), seconds=30)
    assert (await handle.record()).attempt == 0
    assert shop.other.limiter.allowance().retry_after > 20


async def test_when_the_guard_refuses_all_that_it_calls_at_once_it_is_not_charged(shop):
    shop.api.breaker.hold_open()
    async with shop.hf.worker():
        handle = await shop.ask_together.enqueue("refused")
        await until(lambda: _is_put_off(handle), seconds=30)
    assert (await handle.record()).attempt == 0


async def test_when_one_of_them_fails_for_itself_it_has_failed(shop):
    shop.api.breaker.hold_open()
    async with shop.hf.worker():
        handle = await shop.ask_together.enqueue("mixed")
        with pytest.raises(JobDead, match="ValueError: a mistake"):
            await handle.result(30)


async def test_what_one_of_them_has_said_on_purpose_the_task_says(shop):
    async with shop.hf.worker():
        handle = await shop.ask_together.enqueue("snooze")
        await until(lambda: _is_put_off(handle), seconds=30)
    assert (await handle.record()).attempt == 0


async def test_when_nothing_is_left_there_the_workers_limiter_rests(shop):
    async with shop.hf.worker():
        await (await shop.hear_of_the_end.enqueue()).result(30)
        assert 20 < shop.other.limiter.allowance().retry_after <= 36


async def test_a_process_that_dies_inside_gives_its_place_back(shop, tmp_path):
    async with shop.hf.worker():
        with pytest.raises(JobDead, match="signal 9"):
            await (await shop.die_inside.enqueue(str(tmp_path))).result(30)
    assert (tmp_path / "inside").exists()
    assert shop.api.bulkhead.in_flight == 0


async def test_the_deadline_goes_with_it(shop):
    async with shop.hf.worker():
        with deadline(60):
            handle = await shop.how_long.enqueue()
        assert 20 < await handle.result(30) <= 60


async def test_it_has_nothing_to_read(shop):
    async with shop.hf.worker():
        assert await (await shop.read_a_line.enqueue()).result(30) == ""
