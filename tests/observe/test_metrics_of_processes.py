"""Three processes of one worker, of which some are killed: counters never fall, and their totals are the database's."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys

import httpx
import pytest
from metrics_kit import Samples, check_with_promtool

from holdfast import Holdfast
from holdfast.store.states import State
from tools.waiting import until

PROGRAM = """
import asyncio
from holdfast import Backoff, Holdfast, Job, Reject

hf = Holdfast()


@hf.task(name="shop.sell", retry=Backoff(attempts=3, first=0.01, ceiling=0.02))
async def sell(number: int) -> None:
    if number % 10 == 3:
        raise Reject("sold out")


@hf.task(name="shop.book")
async def book(job: Job, number: int) -> None:
    async with job.commit() as tx:
        await tx.fetch("SELECT 1")
"""
SELL, BOOK = 12_000, 1_000


def free_port():
    with socket.socket() as given:
        given.bind(("127.0.0.1", 0))
        return given.getsockname()[1]


@pytest.fixture
async def worker(url, tmp_path):
    (tmp_path / "shop.py").write_text(PROGRAM)
    port = free_port()
    environment = {**os.environ, "HOLDFAST_URL": url, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "holdfast", "worker", "shop:hf", "-p", "3", "-c", "20"]
    process = await asyncio.create_subprocess_exec(
        *command,
        "--probe",
        f"127.0.0.1:{port}",
        cwd=tmp_path,
        env=environment,
        stderr=asyncio.subprocess.DEVNULL,
    )
    yield process, f"http://127.0.0.1:{port}"
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            await process.wait()
    assert not list(tmp_path.glob("holdfast-metrics-*")), "it leaves nothing behind"


def children(pid):
    import psutil

    return [each.pid for each in psutil.Process(pid).children() if "worker" in each.cmdline()]


def names(samples):
    return {
        key: number
        for key, number in samples.numbers.items()
        if key[0].startswith("holdfast_job") and not key[0].endswith(("_ready_jobs", "_created"))
    }


async def test_counters_never_fall_and_their_totals_are_the_databases(url, worker):
    process, at = worker
    async with Holdfast(url) as hf, httpx.AsyncClient(timeout=10) as client:

        @hf.task(name="shop.sell")
        async def sell(number: int) -> None: ...

        @hf.task(name="shop.book")
        async def book(number: int) -> None: ...

        async def scrape():
            return Samples((await client.get(f"{at}/metrics")).text)

        async def ready():
            try:
                return (await client.get(f"{at}/ready")).status_code == 200 and len(
                    children(process.pid)
                ) == 3
            except httpx.HTTPError:
                return False

        await until(ready, 30)
        killed, before, scrapes = 0, {}, 0
        for part in range(4):
            await sell.enqueue_many([sell.bind(number) for number in range(SELL // 4)])
            await book.enqueue_many([book.bind(number) for number in range(BOOK // 4)])
            await asyncio.sleep(0.05 * part)
            os.kill(children(process.pid)[0], signal.SIGKILL)
            killed += 1
            for _ in range(5):
                now = names(await scrape())
                assert {key: number for key, number in before.items() if now.get(key, -1) < number} == {}
                before, scrapes = now, scrapes + 1
                await asyncio.sleep(0.1)

        async def over():
            return all(each.state is State.DEAD for each in await hf.queues.count())

        await until(over, 60)
        expected = {
            ("shop.sell", "dead"): SELL // 10,
            ("shop.sell", "succeeded"): SELL - SELL // 10,
            ("shop.book", "succeeded"): BOOK,
        }
        found = {}

        async def told():
            samples = await scrape()
            for task, outcome in expected:
                found[task, outcome] = samples.total("holdfast_job_runs_total", task=task, outcome=outcome)
            return found == expected

        try:
            await until(told, 15)
        except TimeoutError:
            assert found == expected
        samples = await scrape()
        assert samples.total("holdfast_jobs_rescued_total", state="dead") == 0
        await until(lambda: len(children(process.pid)) == 3, 20)
        check_with_promtool(samples.text)
        assert (killed, scrapes) == (4, 20)
