"""Another SQLite library that comes to the file while the store is open: nothing more is written."""

from __future__ import annotations

import asyncio
import os
import sqlite3

import pytest

from holdfast import Holdfast
from holdfast.kernel.errors import UnsupportedStore
from holdfast.kernel.ids import new_id
from holdfast.store.records import NewJob
from holdfast.store.sqlite import refusals
from holdfast.store.sqlite.store import SqliteStore


@pytest.fixture(autouse=True)
def at_each_write(monkeypatch):
    monkeypatch.setattr(refusals.Watch, "EVERY", 0.0)


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore(str(tmp_path / "jobs.db"))
    await store.open()
    yield store
    await store.close()


def job():
    return NewJob(id=new_id(), task="t")


async def test_one_that_comes_later_is_noticed_at_the_next_write(store, notes):
    await store.jobs.enqueue([job()])
    foreign = sqlite3.connect(store.path)
    foreign.execute("SELECT count(*) FROM holdfast_job").fetchone()
    for _ in range(2):
        with pytest.raises(
            UnsupportedStore, match=r"sqlite3 is loaded.*Nothing more is written.*start it anew"
        ):
            await store.jobs.enqueue([job()])
    with pytest.raises(UnsupportedStore):
        async with store.transaction():
            pass
    assert [name for name, _ in notes if name == "store.foreign_library"] == ["store.foreign_library"]
    assert sum(each.number for each in await store.jobs.count()) == 1, "what is there can be read"
    foreign.close()


async def test_when_it_is_closed_the_locks_are_gone_so_the_store_must_be_opened_again(store):
    foreign = sqlite3.connect(store.path)
    with pytest.raises(UnsupportedStore):
        await store.jobs.enqueue([job()])
    foreign.close()
    with pytest.raises(UnsupportedStore, match="open it again"):
        await store.jobs.enqueue([job()])
    await store.close()
    await store.open()
    await store.jobs.enqueue([job()])


async def test_it_cannot_be_opened_again_before(store):
    foreign = sqlite3.connect(store.path)
    await store.close()
    with pytest.raises(UnsupportedStore):
        await store.open()
    foreign.close()
    await store.open()


async def test_our_own_are_none(store):
    others = [SqliteStore(store.path) for _ in range(5)]
    for each in others:
        await each.open()

    async def busy(each):
        for _ in range(20):
            await each.jobs.enqueue([job()])

    await asyncio.gather(*map(busy, [store, *others]))
    for each in others:
        await each.close()
        await store.jobs.enqueue([job()])


async def test_many_descriptors_of_others_are_none(store, tmp_path):
    (tmp_path / "text").write_text("x")
    files = [os.open(tmp_path / "text", os.O_RDONLY) for _ in range(50)]
    await store.jobs.enqueue([job()])
    for each in files:
        os.close(each)


async def test_the_diagnosis_says_so(store):
    foreign = sqlite3.connect(store.path)
    assert [each.check for each in await store.diagnosis.examine() if each.level == "bad"] == ["library"]
    foreign.close()


async def test_a_worker_does_nothing_and_says_why(tmp_path, notes):
    async with Holdfast(f"sqlite:///{tmp_path / 'shop.db'}") as hf:

        @hf.task
        async def greet() -> None: ...

        await greet.enqueue()
        foreign = sqlite3.connect(hf.store.path)
        async with hf.worker():
            while not any(name == "store.foreign_library" for name, _ in notes):
                await asyncio.sleep(0.01)
        foreign.close()
        [count] = await hf.store.jobs.count()
        assert count.state == "queued"
