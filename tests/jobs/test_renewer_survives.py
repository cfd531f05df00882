"""The thread that renews goes on after whatever fails in it: nobody else looks after it."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from waiting import until

from holdfast import Holdfast
from holdfast.kernel.clock import monotonic
from holdfast.runtime.config import open_store


class Strange:
    """A store whose next twins fail, each in another place, with what no store promises to raise."""

    def __init__(self, store, location, fails):
        self._store, self._location, self._fails = store, location, fails

    def __getattr__(self, name):
        return getattr(self._store, name)

    def twin(self):
        where = self._fails.pop() if self._fails else None
        if where == "twin":
            raise KeyError("strange")
        return StrangeTwin(open_store(self._location), where)


class StrangeTwin:
    def __init__(self, store, where):
        self._store, self._where = store, where

    def __getattr__(self, name):
        if name == self._where:
            self._where = None
            raise KeyError("strange")
        return getattr(self._store, name)


async def test_a_twin_that_fails_strangely(tmp_path):
    """Renewals begin when it is well again, long before a run would be given up."""
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    go = asyncio.Event()

    @hf.task
    async def wait() -> None:
        await go.wait()

    fails = ["open", "twin", "open"]
    async with hf:
        hf.store = Strange(hf.store, hf._inside.location, fails)
        async with hf.worker(lease=3) as worker:
            handle = await wait.enqueue()
            await until(lambda: worker.worker.runs)
            [run] = worker.worker.runs.values()
            first = run.until
            await until(lambda: run.until > first)
            assert fails == []
            assert monotonic() < first
            go.set()
            await handle.result(10)


async def test_a_twin_that_cannot_be_opened_is_told(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'x.db'}")
    async with hf:
        hf.store = Strange(hf.store, hf._inside.location, ["twin"] * 1_000)
        async with hf.worker(lease=3) as worker:
            await until(lambda: "leases were not renewed: 'strange'" in (worker.trouble() or ""))


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # what ran there is thrown away
def test_a_thread_keeps_its_claim_although_its_loop_was_closed(tmp_path):
    """It still works, so nobody else may; when it has ended, nobody renews for it any longer."""
    url, begun, go = f"sqlite:///{tmp_path / 'x.db'}", threading.Event(), threading.Event()
    hf = Holdfast(url)

    @hf.task
    def plain() -> None:
        begun.set()
        go.wait(60)

    async def start():
        await hf.__aenter__()
        handle = await plain.enqueue()
        service = hf.worker(lease=1)
        await service.start()
        await asyncio.to_thread(begun.wait)
        return handle.id, service

    async def rescued():
        async with Holdfast(url) as other:
            return [each.job_id for each in await other.store.claims.rescue()]

    loop = asyncio.new_event_loop()
    job_id, _service = loop.run_until_complete(start())
    loop.close()
    time.sleep(1.5)  # past the lease
    assert asyncio.run(rescued()) == []
    go.set()
    for _ in range(100):
        time.sleep(0.1)
        if asyncio.run(rescued()) == [job_id]:
            return
    pytest.fail("it was renewed for nobody")
