"""Restarts and crashes under the eyes of visitors, and a publisher whose files, sessions and guards are elsewhere."""

from __future__ import annotations

import asyncio
import signal
import time

import httpx
import publisher_kit as kit
import pytest
from processes import PEOPLE, Person, World
from publisher.desk import scheduling
from publisher_processes import MAIN

from tools.proving.place import ports
from tools.seaweed_server import ACCESS, BUCKET, SECRET, SeaweedServer
from tools.waiting import until


class Visitors:
    """As a balancer before some addresses does it: what one does not answer, another does."""

    def __init__(self):
        self.addresses, self.took, self.failed = [], [], []

    async def look(self):
        async with httpx.AsyncClient(timeout=20) as client:
            while True:
                await self._one(client)
                await asyncio.sleep(0.05)

    async def _one(self, client):
        began = time.monotonic()
        for address in [*self.addresses]:
            try:
                answer = await client.get(f"{address}/login")
            except httpx.TransportError:
                continue
            if answer.status_code == 200:
                self.took.append(time.monotonic() - began)
                return
        self.failed.append(self.addresses)


async def api(fleet):
    """A process of the API that is ready, and its address."""
    [port] = ports(1)
    process = fleet.start(*MAIN, "api", PUBLISHER_PORT=str(port))
    address = f"http://127.0.0.1:{port}"

    async def is_ready():
        try:
            async with httpx.AsyncClient() as client:
                return (await client.get(f"{address}/probes/ready")).status_code == 200
        except httpx.TransportError:
            return False

    await until(is_ready, 60)
    return process, address


async def scheduled(hf, artist, number):
    """One a second, from the next second on."""
    await artist.log_in()
    found, now = [], await hf.now()
    for each in range(number):
        post_id = await artist.draft(f"Study {each}")
        await scheduling.schedule(artist.id, post_id, now + 1 + each)
        found.append(post_id)
    return found


def are_published(posts):
    async def asked():
        return all([await kit.state_of(each) == "published" for each in posts])

    return asked


async def test_a_worker_that_crashes_again_and_again_touches_no_request(fleet, any_hf, simulator, ada):
    """P2: the share that waits longer is measured by the proof; here no request fails, and none hangs."""
    _, address = await api(fleet)
    posts = await scheduled(any_hf, ada, 3)
    visitors = Visitors()
    visitors.addresses = [address]
    looking = asyncio.create_task(visitors.look())
    for crash in range(3):
        worker, seen = fleet.start_worker(), len(visitors.took)
        await until(lambda seen=seen: len(visitors.took) > seen + 10, 60)
        await worker.says("takes jobs from", 60)
        worker.signal(signal.SIGKILL)
        assert await worker.ended() == -signal.SIGKILL, crash
    await fleet.worker()
    await until(are_published(posts), 60)
    looking.cancel()
    assert visitors.failed == []
    assert max(visitors.took) < 15
    assert len(simulator.ledger.find("published")) == 3


async def test_a_rolling_restart_while_posts_fall_due(fleet, any_hf, simulator, ada):
    """P3: a new one comes before the old one is asked to leave; every request is answered, and each post is published once."""
    old_api, old_address = await api(fleet)
    old_worker = await fleet.worker()
    posts = await scheduled(any_hf, ada, 8)
    visitors = Visitors()
    visitors.addresses = [old_address]
    looking = asyncio.create_task(visitors.look())
    _, new_address = await api(fleet)
    visitors.addresses = [new_address, old_address]
    await fleet.worker()
    for each in (old_api, old_worker):
        each.signal(signal.SIGTERM)
        assert await each.ended(60) == 0
    await until(are_published(posts), 90)
    looking.cancel()
    assert visitors.failed == []
    assert sorted(each["title"] for each in simulator.ledger.find("published")) == [
        f"Study {n}" for n in range(8)
    ]


@pytest.fixture(scope="module")
def seaweed():
    server = SeaweedServer()
    yield server
    server.stop()


async def test_files_in_an_s3_and_sessions_and_cache_on_redis(
    postgres_url, valkey, seaweed, simulator, tmp_path
):
    """P101, P111: PostgreSQL, a bucket and Redis, by their variables alone: from the login to the published post."""
    world = World(
        tmp_path, postgres_url, REDIS_URL=valkey.url, S3_BUCKET_NAME=BUCKET, S3_ENDPOINT=seaweed.endpoint,
        S3_ACCESS_KEY_ID=ACCESS, S3_SECRET_ACCESS_KEY=SECRET, S3_REGION="us-east-1", S3_PATH_PREFIX="art/live",
        RATE_LIMITER_BASE_DELAY_MS="30", PUBLISHER_FASTEST_DELAY_MS="10",
    )  # fmt: skip
    with world.start("api") as site, world.start("worker") as worker:
        ada = Person(site.ready().url).log_in()
        worker.until(f"{worker.probe_url}/ready")
        [file] = ada.upload().json()["files"]
        told = {"mature": False, "ai_made": False, "agreed": True}
        assert ada.ask("PATCH", f"/api/posts/{file['post_id']}", json=told).status_code == 200
        link = ada.ask("GET", f"/api/files/{file['file_id']}").json()
        assert (
            "art/live" in str(link) or ada.ask("GET", f"/api/files/{file['file_id']}/link").status_code == 200
        )
        assert ada.ask("POST", f"/api/posts/{file['post_id']}/publish-now").status_code == 202
        await until(
            lambda: ada.ask("GET", f"/api/posts/{file['post_id']}").json()["post"]["state"] == "published", 60
        )
        assert len(simulator.ledger.find("published")) == 1
        assert not list((tmp_path / "files").rglob("*.png")), "nothing is in a folder"
    PEOPLE.pop().http.close()
