"""An execution that is killed between any two of its statements leaves nothing, and is done once when its job runs again."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest
from publisher.core import PUBLISHING
from publisher.desk import automations
from publisher.work import automating

HERE = Path(__file__).parent
AT_ONCE = 6  # processes


async def run(how, paths):
    """What each of them ended with."""
    search = os.pathsep.join([str(HERE.parents[1]), *sys.path])
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "automation_killed.py"), how, *map(str, paths),
        env={**os.environ, "PYTHONPATH": search}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await child.communicate()
    return [int(code) for code in out.split()]


def counted(path):
    """Executions, scheduled posts, and jobs that will publish them."""
    with sqlite3.connect(path) as connection:
        [executions] = connection.execute("SELECT count(*) FROM executions").fetchone()
        [scheduled] = connection.execute("SELECT count(*) FROM posts WHERE state = 'scheduled'").fetchone()
        [jobs] = connection.execute(
            "SELECT count(DISTINCT p.id) FROM posts p JOIN holdfast_job j ON j.id = p.job_id WHERE p.state = 'scheduled'"
        ).fetchone()
        [all_jobs] = connection.execute(
            "SELECT count(*) FROM holdfast_job WHERE task = 'publisher.publish'"
        ).fetchone()
    connection.close()
    return executions, scheduled, jobs, all_jobs


@pytest.fixture
async def prepared(tmp_path, simulator, ada, open_at):
    """A database in which one execution for two drafts is about to begin, closed."""
    path = tmp_path / "prepared.db"
    async with open_at(f"sqlite:///{path}") as hf:
        await ada.log_in()
        for number in range(4):
            await ada.draft(f"Draft {number}")
        rules = [{"kind": "interval", "minutes": 5, "posts": 2, "since": await hf.now() - 1}]
        made = await automations.make(ada.id, {"rules": rules})
        await automations.toggle(ada.id, made, is_on=True)
        async with hf.transaction() as tx:
            await tx.execute("UPDATE automations SET id = 'daily'")
        await hf.queues.pause(PUBLISHING)
        await automating.execute.enqueue("daily")
    return path


async def test_killed_between_any_two_statements_it_is_none_or_all(prepared, tmp_path):
    outcomes, number = [], 0
    while not outcomes or outcomes[-1] != 0:
        paths = [tmp_path / f"{each}.db" for each in range(number, number + AT_ONCE)]
        for path in paths:
            shutil.copy(prepared, path)
        codes = await run("kill", paths)
        assert set(codes) <= {-9, 0}
        assert all(counted(path) in ((0, 0, 0, 0), (1, 2, 2, 2)) for path in paths)
        assert await run("finish", paths) == [0] * AT_ONCE
        assert [counted(path) for path in paths] == [(1, 2, 2, 2)] * AT_ONCE
        outcomes += codes
        number += AT_ONCE
    places = outcomes.index(0)
    assert places > 20, f"{places} places in which it was killed are too few: it was not the whole execution"
