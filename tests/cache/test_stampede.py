"""10,000 readers of one key in four real processes cause one load; and one more when it is stale."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
import redis.asyncio
from waiting import until

from holdfast import Holdfast
from tools.processes import Process, environment

PROCESSES, READERS = 4, 2_500
HERE = Path(__file__).parent


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def where(request, tmp_path):
    """The URL of the database and, if values are kept there, of a Redis."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url"), ""
    server = request.getfixturevalue("own_valkey").url if request.param == "redis" else ""
    return f"sqlite:///{tmp_path / 'c.db'}", server


async def make_stale(url, server):
    """As if it were old: the moment until which it is fresh has passed."""
    if server:
        client = redis.asyncio.Redis.from_url(server)
        await client.hset("holdfast:cache:value:crowd:all", "fresh", "1")
        await client.aclose()
        return
    table, past = ("holdfast.cache", "'2000-01-01'") if "postgres" in url else ("holdfast_cache", "1")
    async with Holdfast(url) as hf, hf.transaction() as tx:
        assert await tx.execute(f"UPDATE {table} SET fresh_until = {past}") == 1


async def test_a_stampede_is_one_load(where, tmp_path):
    """Four processes have to start; half of the time of the readers is Python's own."""
    url, server = where
    async with Holdfast(url):
        pass  # the file is there before four processes want to make it
    folder = tmp_path / "crowd"
    folder.mkdir()
    command = [sys.executable, str(HERE / "stampede.py"), url, server, str(folder)]
    processes = [
        Process([*command, str(n), str(READERS)], folder, environment([]), tmp_path / f"log-{n}")
        for n in range(PROCESSES)
    ]

    def loads():
        return len((folder / "loads").read_text().splitlines()) if (folder / "loads").exists() else 0

    async def all_of(name):
        paths = [folder / f"{name}-{n}" for n in range(PROCESSES)]

        def there():
            assert all(process.alive for process in processes), [process.log for process in processes]
            return all(path.exists() for path in paths)

        await until(there, 120)
        return [path.read_text() for path in paths]

    try:
        await all_of("ready-first")
        (folder / "go-first").touch()
        answers = [value for text in await all_of("done-first") for value in json.loads(text)]
        assert (len(answers), set(answers), loads()) == (10_000, {1}, 1)

        await all_of("ready-second")
        await make_stale(url, server)
        (folder / "go-second").touch()
        answers = [value for text in await all_of("done-second") for value in json.loads(text)]
        assert len(answers) == 10_000
        assert set(answers) <= {1, 2}
        await until(lambda: loads() == 2, 60)
        await asyncio.sleep(0.3)
        assert loads() == 2
        (folder / "end").touch()
    finally:
        for process in processes:
            process.destroy()
