"""Real processes of the publisher: how many calls at a time, whose pace, whose breaker, and how they leave."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import publisher
import publisher_kit as kit
import pytest
from publisher import running
from publisher.core import CLEANING, PUBLISHING, TOKENS
from publisher.desk import scheduling
from publisher_processes import LEASE, calls

from tools.proving.place import ports
from tools.waiting import until

NAMES = ("ada-arc", "bea-brush", "cyn-clay", "dan-dye", "eva-etch", "fay-fresco")


async def due_posts(simulator, names=NAMES, each=1):
    """Of several artists, due now; their ids."""
    found = []
    for name in names:
        artist = await kit.Artist(simulator, name).log_in()
        for number in range(each):
            post_id = await artist.draft(f"{name} {number}")
            await scheduling.publish_now(artist.id, post_id)
            found.append(post_id)
    return found


def are_published(*post_ids):
    async def asked():
        return all([await kit.state_of(each) == "published" for each in post_ids])

    return asked


class Watch:
    """The highest number of calls that were open at once at the simulator."""

    def __init__(self, simulator):
        self.open = self.highest = 0
        self._app, simulator.app = simulator.app, self

    async def __call__(self, scope, receive, send):
        is_call = scope.get("path", "").endswith("/stash/submit")
        self.open += is_call
        self.highest = max(self.highest, self.open)
        try:
            await self._app(scope, receive, send)
        finally:
            self.open -= is_call


# --- apart from the API ---


def test_no_process_calls_another_by_http():
    """P1: clients of HTTP are in outside/ alone, and they are given DeviantArt's address."""
    folder = Path(publisher.__file__).parent
    for path in folder.rglob("*.py"):
        names = [
            name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (
                [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module]
            )
        ]
        clients = {"httpx", "httpx2", "requests", "aiohttp", "urllib.request", "http.client"} & set(names)
        # Seeding plays the artist who decides in DeviantArt's own pages.
        assert not clients or path.parent.name in ("outside", "seeding"), (path, clients)
    assert "public_url" not in (folder / "outside/deviantart.py").read_text()


async def test_it_publishes_without_an_api_and_from_three_queues(fleet, any_hf, simulator):
    """P1, P6: queues with the slots of the original; nobody but a worker runs."""
    posts = await due_posts(simulator, NAMES[:1])
    slots = running.worker_command(1)[running.worker_command(1).index("--queues") + 1]
    assert {f"{PUBLISHING}:5", f"{TOKENS}:1", f"{CLEANING}:2"} <= set(slots.split(","))
    assert (PUBLISHING, TOKENS, CLEANING) == ("deviation-publisher", "token-maintenance", "r2-cleanup")
    await fleet.worker()
    await until(are_published(*posts), 60)


# --- slots and times ---


@pytest.mark.parametrize("slots", [2, 5])
async def test_as_many_calls_at_a_time_as_publisher_concurrency_says(fleet, any_hf, simulator, slots):
    """P5, P102."""
    watch, simulator.settings.answers_in = Watch(simulator), 0.6
    posts = await due_posts(simulator)
    await fleet.worker(PUBLISHER_CONCURRENCY=str(slots))
    await until(are_published(*posts), 60)
    assert watch.highest == slots


async def test_one_run_may_take_longer_than_its_lease_and_not_longer_than_its_time(
    fleet, any_hf, simulator, ada
):
    """P7, P102: a slow call with heartbeats is nobody's but its holder's; one that takes too long is cut, and tried again."""
    simulator.settings.answers_in = 1.5 * LEASE
    [post_id] = await due_posts(simulator, NAMES[:1])
    first, _ = await fleet.worker(), await fleet.worker()
    await until(are_published(post_id), 60)
    [job] = await any_hf.jobs.find(unique=f"deviation:{post_id}", limit=1) or [None]
    story = await any_hf.jobs.story(await job_id_of(any_hf, post_id))
    assert [claim.outcome for claim in story.claims] == ["succeeded"]
    assert job is None or job.attempt == 1
    for each in fleet.processes:
        each.signal(signal.SIGTERM)
        assert await each.ended(60) == 0
    [late] = await due_posts(simulator, NAMES[1:2])
    await fleet.worker(PUBLISHER_JOB_TIMEOUT_MS="1000", PUBLISHER_MAX_ATTEMPTS="2")

    async def was_cut():
        story = await any_hf.jobs.story(await job_id_of(any_hf, late))
        return [
            claim
            for claim in story.claims
            if "1 s" in (claim.error or "") or "time" in (claim.error or "").lower()
        ]

    assert await until(was_cut, 60)
    assert first.code == 0


async def job_id_of(hf, post_id):
    async with hf.transaction() as tx:
        [(job_id,)] = await tx.fetch("SELECT job_id FROM posts WHERE id = $1", post_id)
    return job_id


async def test_publish_now_makes_no_call_itself(ada_calls, simulator):
    """P8: the route has answered before anybody has asked DeviantArt, however long that takes."""
    assert await ada_calls() == 202
    assert calls(simulator, "stash/submit") == 0


@pytest.fixture
async def ada_calls(any_hf, simulator):
    from publisher.core import settings
    from publisher.outside.deviantart import DeviantArt
    from publisher.web.app import app
    from visitors import Browser

    async with DeviantArt.open(settings.deviantart_url, settings.call_timeout_s) as opened:
        app.state.site = opened
        async with Browser(app) as browser:
            await browser.log_in("ada-arc")
            post_id = await browser.make_draft("now.png")
            simulator.settings.answers_in = 20.0

            async def publish_now():
                return (await browser.post(f"/api/posts/{post_id}/publish-now")).status_code

            yield publish_now


# --- pace and breaker of the fleet ---


async def test_several_processes_never_exceed_the_pace_of_one_artist(fleet, any_hf, simulator):
    """P39: four workers, one artist: whoever calls, the gaps are those of one."""
    at, usual = [], simulator.faults.next

    def timed(endpoint, who=None):
        if endpoint.startswith("stash/"):
            at.append(time.monotonic())
        return usual(endpoint, who)

    simulator.faults.next = timed
    posts = await due_posts(simulator, NAMES[:1], each=6)
    pace = {
        "RATE_LIMITER_BASE_DELAY_MS": "400",
        "PUBLISHER_FASTEST_DELAY_MS": "400",
        "RATE_LIMITER_MAX_DELAY_MS": "3000",
    }
    await asyncio.gather(*(fleet.worker(**pace) for _ in range(4)))
    await until(are_published(*posts), 90)
    gaps = [later - sooner for sooner, later in pairwise(at)]
    assert len(at) == 12
    # An answer that is on its way for longer than the next one makes a single gap shorter; their sum tells the rate.
    assert at[-1] - at[0] >= 0.9 * 0.4 * (len(at) - 1), gaps


async def test_an_open_breaker_outlives_its_worker_until_a_person_lets_go(fleet, any_hf, simulator):
    """P35, P37: one worker opens it, and one that is started after it makes no call; `holdfast guards` holds it closed."""
    await due_posts(simulator, NAMES[:1])
    simulator.faults.put("stash/submit", "server-error", times=3)
    hurried = {"CIRCUIT_BREAKER_THRESHOLD": "1", "CIRCUIT_BREAKER_OPEN_DURATION_MS": "600000"}
    first = await fleet.worker(**hurried)

    async def is_open():
        return str((await any_hf.guards.look("deviantart")).state) == "open"

    await until(is_open, 60)
    made = calls(simulator, "stash/submit")
    simulator.faults.clear()
    first.signal(signal.SIGKILL)
    second = await fleet.worker(**hurried)
    other = await kit.Artist(simulator, "bo-linnet").log_in()
    theirs = await other.draft("Low sun")
    await scheduling.publish_now(other.id, theirs)

    async def is_held():
        job = await any_hf.jobs.get(await job_id_of(any_hf, theirs))
        return job.held_by is not None and str(job.held_by.reason) == "guard"

    await until(is_held, 60)
    assert (calls(simulator, "stash/submit"), second.alive) == (made, True)
    look = await any_hf.guards.look("deviantart")
    assert look.since is not None
    done = _holdfast(fleet, "guards", "hold-closed", "deviantart")
    assert done.returncode == 0, done.stderr
    await until(are_published(theirs), 60)
    assert "deviantart" in _holdfast(fleet, "guards", "list").stdout


def _holdfast(fleet, *command):
    from publisher_server import ENVIRONMENT

    environment = os.environ | ENVIRONMENT | {"DATABASE_URL": fleet.url, "HOLDFAST_ACTOR": "ada@ops"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(Path(publisher.__file__).parents[1]), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    )
    return subprocess.run(
        [*fleet.holdfast, *command, "--app", "publisher.program:hf"],
        env=environment, capture_output=True, text=True, check=False, cwd=fleet.folder,
    )  # fmt: skip


# --- leaving ---


async def test_an_idle_worker_leaves_at_once(fleet, any_hf):
    """P90: the original waits for 30 s in any case."""
    worker = await fleet.worker()
    at = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert await worker.ended(25) == 0
    assert time.monotonic() - at < 25


async def test_what_runs_may_end_when_its_worker_is_asked_to_leave(fleet, any_hf, simulator):
    """P90: nothing new is claimed, what is under way ends, the rest stays queued and uncharged."""
    simulator.settings.answers_in = 1.0
    posts = await due_posts(simulator, NAMES[:3])
    worker = await fleet.worker(PUBLISHER_CONCURRENCY="1")
    await fleet.called(simulator, "stash/submit")
    worker.signal(signal.SIGINT)
    assert await worker.ended(60) == 0
    states = [await kit.state_of(each) for each in posts]
    assert sorted(states) == ["published", "scheduled", "scheduled"]
    jobs = [await any_hf.jobs.get(await job_id_of(any_hf, each)) for each in posts]
    assert sorted(job.attempt for job in jobs) == [0, 0, 1]
    assert calls(simulator, "stash/submit") == 1


async def test_a_second_signal_ends_a_worker_at_once_and_another_goes_on(fleet, any_hf, simulator):
    """P91; what it held comes back with its lease, and is published once."""
    simulator.settings.answers_in = 15.0
    [post_id] = await due_posts(simulator, NAMES[:1])
    worker = await fleet.worker(PUBLISHER_CALL_TIMEOUT_S="60")
    await fleet.called(simulator, "stash/submit")
    began = time.monotonic()

    def has_left():
        if worker.alive:
            worker.signal(signal.SIGTERM)
        return not worker.alive

    await until(has_left, 20)
    assert worker.code == 130
    assert time.monotonic() - began < 10, "the call alone takes longer"
    simulator.settings.answers_in = 0.0
    await fleet.worker()
    await until(are_published(post_id), 60)
    assert len(simulator.ledger.find("published")) == 1


async def test_probes_are_where_they_are_wanted_and_nowhere_else(fleet, any_hf):
    """P87: without HEALTH_CHECK_ENABLED nothing listens; a watchdog is there in any case."""
    import httpx

    worker, port = await fleet.probed()
    assert httpx.get(f"http://127.0.0.1:{port}/health").json()["status"] == "healthy"
    [other] = ports(1)
    await fleet.worker(HEALTH_CHECK_PORT=str(other), HEALTH_CHECK_ENABLED="false")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{other}/health")
    command = running.worker_command(1)
    assert command[command.index("--watchdog") + 1] == "60"
    assert command[command.index("--shutdown-timeout") + 1] == "30"
    assert worker.alive
