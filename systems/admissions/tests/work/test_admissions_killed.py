"""What is killed between any two of its statements is done once when it runs again: stages, a withdrawal, and the release of a round."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import admissions_kit as kit
import pytest
from admissions.desk import applying
from admissions.work.releasing import release
from admissions_server import ENVIRONMENT
from test_admissions_release import decided

from holdfast.testing import drain

HERE = Path(__file__).parent
EVERY = int(os.environ.get("KILL_EVERY", "5"))  # statement; 1 takes five times as long
AT_ONCE = 12  # copies of one database


async def run(what, paths):
    """What the killed ones ended with, and what those ended with that went on."""
    search = os.pathsep.join([str(HERE.parents[1]), *sys.path])
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(HERE / "admissions_killed.py"), what, *map(str, paths),
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": search}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await child.communicate()
    codes = [int(code) for code in out.split()]
    return codes[: len(paths)], codes[len(paths) :]


async def killed_everywhere(what, prepared, folder, expected, *, least):
    """Killed after 0, 5, 10 … statements, until it is no longer killed; each time it goes on to the same end."""
    codes = []
    while 0 not in codes:
        numbers = range(len(codes) * EVERY, (len(codes) + AT_ONCE) * EVERY, EVERY)
        paths = [folder / f"{number}.db" for number in numbers]
        for path in paths:
            shutil.copy(prepared, path)
        killed, finished = await run(what, paths)
        assert set(killed) <= {-9, 0}
        assert finished == [0] * len(paths)
        for path in paths:
            assert told(path) == expected, f"killed after {path.stem} statements"
        codes += killed
    places = codes.index(0) * EVERY
    assert places >= least, f"it was killed in {places} places only: that was not all of it"


def told(path):
    """The ends of applications, their lines, letters, events and entries, each as often as it is there."""
    with closing(sqlite3.connect(path)) as connection:
        counts = (
            "SELECT state, count(*) FROM applications GROUP BY state",
            "SELECT kind, count(*) FROM steps GROUP BY kind",
            "SELECT kind, count(*), count(DISTINCT message_id) FROM letters GROUP BY kind",
            "SELECT type, count(*) FROM holdfast_outbox GROUP BY type",
            "SELECT sign(amount), count(*), sum(amount) FROM entries GROUP BY 1",
            "SELECT state, count(*) FROM documents GROUP BY state",
            "SELECT stage, count(*), count(DISTINCT released_at) FROM decisions GROUP BY stage",
        )
        return [sorted(connection.execute(each).fetchall()) for each in counts]


@pytest.fixture
async def prepare(tmp_path, stripe_simulator, open_at):
    """Makes a database, closes it, and gives its path."""

    async def prepared(act, name="prepared"):
        path = tmp_path / f"{name}.db"
        async with open_at(f"sqlite:///{path}") as hf:
            await act(hf)
        return path

    return prepared


async def ended_without_a_kill(what, prepared, folder):
    path = folder / "whole.db"
    shutil.copy(prepared, path)
    # It never gets so far as to be killed.
    path = path.rename(folder / "100000.db")
    assert await run(what, [path]) == ([0], [0])
    return told(path)


@pytest.mark.parametrize(("what", "least"), [("open", 30), ("complete", 30)])
async def test_stages_that_are_killed_anywhere_are_done_once(
    tmp_path, prepare, stripe_simulator, box, what, least
):
    async def act(hf):
        await hf.queues.pause("verify_document")
        application = await kit.submitted()
        await drain(hf)  # the copies share one folder, where the file has come to its place
        await hf.queues.resume("verify_document")
        if what == "complete":
            await drain(hf, raise_dead=True)
            await kit.pay(application)

    prepared = await prepare(act)
    whole = await ended_without_a_kill(what, prepared, tmp_path)
    assert max(count for _, count in whole[1]) == 1
    await killed_everywhere(what, prepared, tmp_path, whole, least=least)
    assert len(stripe_simulator.ledger.find("charged")) == (what == "complete")


async def test_a_withdrawal_that_is_killed_anywhere_gives_the_money_back_once(
    tmp_path, prepare, stripe_simulator, box
):
    async def act(hf):
        application = await kit.submitted()
        await drain(hf, raise_dead=True)
        await kit.pay(application)
        await drain(hf, raise_dead=True)
        async with hf.transaction() as tx:
            [(owner,)] = await tx.fetch("SELECT person_id FROM applications")
        await applying.withdraw(owner, application, "moved away")

    prepared = await prepare(act)
    whole = await ended_without_a_kill("withdraw", prepared, tmp_path)
    assert whole[4] == [(-1, 1, -7500), (1, 1, 7500)]
    await killed_everywhere("withdraw", prepared, tmp_path, whole, least=20)
    assert [each["amount"] for each in stripe_simulator.ledger.find("refunded")] == [7500]


async def test_a_release_that_is_killed_anywhere_tells_each_once(tmp_path, prepare, stripe_simulator, box):
    async def act(hf):
        term = await decided(hf, 3)
        await release.start(term, id=f"release:{term}")

    prepared = await prepare(act)
    whole = await ended_without_a_kill("release", prepared, tmp_path)
    assert whole[6] == [("released", 3, 1)]
    await killed_everywhere("release", prepared, tmp_path, whole, least=20)
