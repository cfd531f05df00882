"""Probes say what is wrong, ask only what is needed, and give up in time."""

from __future__ import annotations

import asyncio
import signal

import httpx
import pytest
from edge import client

from holdfast import Holdfast
from holdfast.errors import UsageError
from holdfast.kernel.clock import monotonic
from holdfast.web import Report, probes


async def ask(app, path):
    async with client(app) as asker:
        answer = await asker.get(path)
        return answer.status_code, answer.json()


async def test_a_process_that_is_well(hf):
    app = probes(hf, service="shop")
    for path in ("/live", "/ready", "/startup"):
        status, found = await ask(app, path)
        assert (status, found["well"], found["reasons"], found["service"]) == (200, True, [], "shop")
    assert {each["name"] for each in (await ask(app, "/ready"))[1]["checks"]} == {"tables", "database"}


async def test_a_worker_is_ready_while_it_takes_jobs(hf):
    app, gate = probes(hf), asyncio.Event()

    @hf.task(name="shop.wait")
    async def wait() -> None:
        await gate.wait()

    await wait.enqueue()
    service = hf.worker()
    await service.start()
    while (await ask(app, "/ready"))[1]["work"]["jobs"] != 1:
        await asyncio.sleep(0.01)
    assert (await ask(app, "/ready"))[0] == 200
    stopping = asyncio.create_task(service.stop())
    await asyncio.sleep(0)
    status, found = await ask(app, "/ready")
    assert (status, found["reasons"]) == (503, ["worker: it is leaving"])
    assert (await ask(app, "/live"))[0] == 200
    gate.set()
    await stopping


async def test_without_tables_it_has_not_started(empty_postgres_url):
    async with Holdfast(empty_postgres_url) as hf:
        app = probes(hf)
        status, found = await ask(app, "/startup")
        assert status == 503
        assert "run holdfast migrate" in found["reasons"][0]
        assert (await ask(app, "/ready"))[0] == 503
        await hf.migrate()
        assert (await ask(app, "/startup"))[0] == 200


async def test_what_is_shared_is_told_and_takes_nobody_out(hf):
    async def redis():
        raise ConnectionError("redis is away")

    async def disk():
        return "the disk is full"

    told = probes(hf, told={"redis": redis})
    status, found = await ask(told, "/ready")
    assert status == 200
    [check] = [each for each in found["checks"] if each["name"] == "redis"]
    assert (check["well"], check["needed"], check["error"]) == (False, False, "redis is away")
    assert (await ask(probes(hf, needed={"disk": disk}), "/ready"))[1]["reasons"] == [
        "disk: the disk is full"
    ]


async def test_each_question_has_its_time_and_ends_with_it(hf):
    ended = asyncio.Event()

    async def hangs():
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    began = monotonic()
    status, found = await ask(probes(hf, needed={"other": hangs}, patience=0.2), "/ready")
    assert (status, found["reasons"]) == (503, ["other: no answer within 0.2 s"])
    assert ended.is_set()
    assert monotonic() - began < 2


async def test_a_database_that_stands_still_is_told_in_time_and_asked_nothing_more(hf, url):
    if url.startswith("sqlite"):
        pytest.skip("a file does not stand still")
    import psutil

    app = probes(hf, patience=0.5)
    assert (await ask(app, "/ready"))[0] == 200
    [[backend]] = [[row[0]] for row in await _pids(hf)]
    process = psutil.Process(backend)
    process.send_signal(signal.SIGSTOP)
    try:
        began = monotonic()
        answers = [await ask(app, "/ready") for _ in range(3)]
        assert monotonic() - began < 4
    finally:
        process.send_signal(signal.SIGCONT)
    assert any("no answer within 0.5 s" in " ".join(found["reasons"]) for _, found in answers), answers
    while (await ask(app, "/ready"))[0] != 200:
        await asyncio.sleep(0.05)
    assert hf.store.pool_use().waiting == 0
    assert hf.store.pool_use().used <= 1, "no question is left behind"


async def _pids(hf):
    async with hf.transaction() as tx:
        return await tx.fetch("SELECT pg_backend_pid()")


async def test_paths_and_shapes_of_a_system(hf):
    def shape(report: Report):
        if report.probe == "live":
            return {
                "status": "healthy",
                "service": report.service,
                "uptime": report.uptime,
                "timestamp": report.timestamp,
            }
        work = {"running": False, "activeJobs": 0} if report.work is None else report.work
        return {"status": "ready" if report.well else "not_ready", "worker": work, "checks": report.checks}

    app = probes(hf, service="publisher", paths={"/health": "live", "/ready": "ready"}, shape=shape)
    status, found = await ask(app, "/health")
    assert (status, found["status"], found["service"]) == (200, "healthy", "publisher")
    assert (await ask(app, "/ready"))[1]["worker"] == {"running": False, "activeJobs": 0}
    async with client(app) as asker:
        assert (await asker.get("/live")).status_code == 404
        assert (await asker.post("/health")).status_code == 405
        assert (await asker.head("/health")).content == b""
    with pytest.raises(UsageError, match="live, ready, startup"):
        probes(hf, paths={"/health": "alive"})


async def test_it_can_be_mounted(hf):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = Starlette(routes=[Mount("/health", probes(hf))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as asker:
        assert (await asker.get("/health/live")).status_code == 200
