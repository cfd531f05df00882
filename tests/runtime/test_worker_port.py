"""`holdfast worker --probe`: one port for probes and metrics, and a process that stands still is seen and ends itself."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys

import httpx
import pytest
from cli_kit import run_process

from tools.waiting import until

PROGRAM = """
import time
from holdfast import Holdfast
from holdfast.web import probes

hf = Holdfast()


@hf.task(name="shop.block")
async def block() -> None:
    time.sleep(60)
"""
SHAPED = (
    PROGRAM
    + """
probes(hf, service="shop", paths={"/health": "live"}, shape=lambda report: {"status": "healthy"})
"""
)


@pytest.fixture
async def started(tmp_path, url):
    processes = []

    async def start(*options, program=PROGRAM):
        (tmp_path / "shop.py").write_text(program)
        with socket.socket() as given:
            given.bind(("127.0.0.1", 0))
            port = given.getsockname()[1]
        environment = {**os.environ, "HOLDFAST_URL": url, "PYTHONPATH": str(tmp_path)}
        command = [
            sys.executable,
            "-m",
            "holdfast",
            "worker",
            "shop:hf",
            "--probe",
            f"127.0.0.1:{port}",
            *options,
        ]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=tmp_path, env=environment, stderr=asyncio.subprocess.PIPE
        )
        processes.append(process)
        return process, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=1)

    yield start
    for process in processes:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await process.wait()


async def status(client, path):
    try:
        return (await client.get(path)).status_code
    except httpx.HTTPError:
        return None


async def test_one_process_serves_probes_and_metrics_and_leaves(hf, started, tmp_path):
    process, client = await started("--log-level", "error")
    await until(lambda: status(client, "/ready"), 20)
    await until(lambda: _is(client, "/ready", 200), 20)
    assert await status(client, "/live") == 200
    assert await status(client, "/startup") == 200
    assert await status(client, "/other") == 404
    at = str(client.base_url).removeprefix("http://").rstrip("/")
    assert run_process("health", "--live", "--at", at, folder=tmp_path).returncode == 0

    async def counted():
        return "holdfast_worker_processes 1.0" in (await client.get("/metrics")).text

    await until(counted)
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    gone = run_process("health", "--live", "--at", at, folder=tmp_path)
    assert gone.returncode == 1
    assert "Nothing answers" in gone.stderr


async def _is(client, path, wanted):
    return await status(client, path) == wanted


async def test_the_programs_own_probes_are_served(hf, started, tmp_path):
    _, client = await started("-p", "2", program=SHAPED)
    await until(lambda: _is(client, "/health", 200), 20)
    assert (await client.get("/health")).json() == {"status": "healthy"}
    at = str(client.base_url).removeprefix("http://").rstrip("/")
    assert run_process("health", "--live", "--at", f"{at}/health", folder=tmp_path).returncode == 0
    other = run_process("health", "--live", "--at", at, folder=tmp_path)
    assert other.returncode == 1
    assert (
        f"has no /live. When the program has given its probes other paths, name one: --at {at}/PATH"
        in other.stderr
    )


async def test_a_process_that_stands_still_does_not_answer_and_ends_itself(url, hf, started):
    @hf.task(name="shop.block")
    async def block() -> None: ...

    process, client = await started("--watchdog", "2")
    await until(lambda: _is(client, "/ready", 200), 20)
    await block.enqueue()
    await until(lambda: _is(client, "/live", None), 10)
    async with asyncio.timeout(20):
        told = (await process.stderr.read()).decode()
        assert await process.wait() == 70
    assert "has stood still for 2 s" in told


async def test_a_supervisor_replaces_the_process_that_stands_still(url, hf, started):
    @hf.task(name="shop.block")
    async def block() -> None: ...

    _, client = await started("-p", "2", "--watchdog", "2")
    await until(lambda: _is(client, "/ready", 200), 20)
    job = await block.enqueue()

    async def charged():
        return (await hf.jobs.get(job.id)).interruptions > 0

    await until(charged, 20)
    assert await status(client, "/live") == 200
