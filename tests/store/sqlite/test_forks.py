"""A forked child finds the file as its parent left it: not in the middle of a transaction that nobody will end."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from running import in_child

from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.sqlite.store import SqliteStore

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@asynccontextmanager
async def opened(path):
    store = SqliteStore(path)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def stores_a_job(path):
    async with asyncio.timeout(5), opened(path) as store:
        await store.jobs.enqueue([NewJob(id=new_id(), task="t")])


async def test_a_fork_comes_between_the_transactions_of_the_writer(tmp_path):
    path = tmp_path / "x.db"
    async with opened(path) as store:
        for turn in range(40):
            jobs = [NewJob(id=new_id(), task="t") for _ in range(200)]
            writing = [
                asyncio.create_task(store.jobs.enqueue(jobs[at : at + 20])) for at in range(0, 200, 20)
            ]
            await asyncio.sleep(0.0003 * (turn % 8))  # so that the writer is in the middle of it
            assert in_child(lambda: stores_a_job(path)) == "None"
            await asyncio.gather(*writing)


async def test_a_child_that_was_forked_inside_a_transaction_is_told_so(tmp_path):
    path = tmp_path / "x.db"
    async with opened(path) as store:
        async with store.transaction():
            said = in_child(lambda: stores_a_job(path))
        assert said.startswith("UnsupportedStore: This process was forked while a transaction was open on")
        assert in_child(lambda: stores_a_job(path)) == "None"
