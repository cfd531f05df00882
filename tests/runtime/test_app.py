"""The Holdfast object: no I/O until it is entered, and one transaction for the caller's rows and jobs."""

import asyncio

import pytest

from holdfast import Holdfast
from holdfast.kernel.errors import NotOpen, UsageError
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.states import State


async def test_no_file_is_made_before_it_is_entered(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}")
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotOpen):
        await hf.jobs.get(new_id())
    async with hf:
        assert await hf.jobs.get(new_id()) is None
        with pytest.raises(UsageError, match="open already"):
            await hf.__aenter__()
    async with hf:  # it may be entered again after it was left
        assert await hf.migrate() == []


async def test_rows_and_jobs_commit_together_or_not_at_all(tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'jobs.db'}") as hf:
        async with hf.transaction() as tx:
            assert await tx.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)") == 0
        kept, gone = NewJob(id=new_id(), task="t"), NewJob(id=new_id(), task="t")
        async with hf.transaction() as tx:
            assert await tx.execute("INSERT INTO orders (name, id) VALUES ($2, $1), ('b', 2)", 1, "a") == 2
            await hf.store.jobs.enqueue([kept], tx=tx)
        with pytest.raises(ZeroDivisionError):
            async with hf.transaction() as tx:
                await tx.execute("INSERT INTO orders (id) VALUES ($1)", 3)
                await hf.store.jobs.enqueue([gone], tx=tx)
                raise ZeroDivisionError
        async with hf.transaction() as tx:
            assert await tx.fetch("SELECT id, name FROM orders WHERE id <> $1 ORDER BY id", 9) == [
                (1, "a"),
                (2, "b"),
            ]
        assert await hf.jobs.get(kept.id) is not None
        assert await hf.jobs.get(gone.id) is None


def test_it_shows_where_it_is_without_a_password():
    assert repr(Holdfast("postgresql://ada:s3cret@h/d")) == "Holdfast(postgresql://ada:***@h/d)"


async def test_leaving_stops_the_workers_that_still_run(tmp_path, caplog):
    hf, started, ended = Holdfast(f"sqlite:///{tmp_path / 'x.db'}"), asyncio.Event(), []

    @hf.task
    async def long() -> None:
        started.set()
        await asyncio.sleep(0.2)
        ended.append(True)

    async with hf:
        await long.enqueue()
        service = hf.worker(grace=10)
        await service.start()
        await started.wait()
    assert ended
    assert not service.is_running
    async with hf:
        [record] = await hf.store.jobs.find(limit=5)
        assert record.state is State.SUCCEEDED
    assert "trouble" not in caplog.text


async def test_one_worker_that_cannot_be_stopped_leaves_the_others_no_reason_to_go_on(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    with pytest.raises(RuntimeError, match="no"):
        async with hf:
            services = [hf.worker() for _ in range(3)]
            for service in services:
                await service.start()
            services[1]._stack.callback(fail)
    assert not any(service.is_running for service in services)
    async with hf:
        assert await hf.jobs.get(new_id()) is None


def fail():
    raise RuntimeError("no")
