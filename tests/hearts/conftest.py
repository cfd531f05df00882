"""Programs as users write them, by public names only, in real worker processes on both stores, with a provider that keeps a ledger."""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from heart_provider import Provider
from heart_publisher import Publisher, Settings
from heart_workers import workers_are_there

from tools.processes import Process, environment, worker_command

HERE = Path(__file__).parent
PROGRAM = """
from heart_publisher import Publisher, Settings
hf = Publisher({settings!r}).hf
"""


@pytest.fixture
async def provider():
    async with Provider() as server:
        yield server


@pytest.fixture
def working(tmp_path):
    """Worker processes that run this program, until the block ends."""

    @asynccontextmanager
    async def working(program: str, *, queues: str, processes: int = 2):
        (tmp_path / "heart_program.py").write_text(program)
        command = worker_command("heart_program:hf", "-q", queues, "-p", str(processes), lease=5)
        workers = Process(command, tmp_path, environment([tmp_path, HERE]), tmp_path / "workers.log")
        try:
            yield workers
            workers.signal(signal.SIGTERM)
            assert await workers.ended(60) == 0, workers.log
        finally:
            await asyncio.to_thread(workers.destroy)

    return working


@pytest.fixture
def publishing(url, provider, working):
    """A publisher whose pages are here, and its posts published by workers elsewhere."""

    @asynccontextmanager
    async def publishing(*, slots: int = 20, processes: int = 2, **settings):
        made = Settings(url, provider.address, **settings)
        publisher = Publisher(made)
        async with publisher.hf:
            await publisher.prepare()
            program = PROGRAM.format(settings=made)
            async with working(program, queues=f"default:{slots}", processes=processes) as workers:
                await workers_are_there(publisher.hf, processes)
                publisher.workers = workers
                yield publisher

    return publishing
