"""A rotation is killed in the middle while four processes write, on both stores: the next worker finishes it, and no write is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from itertools import chain

import pytest

from holdfast import Holdfast
from holdfast.vault import Keyring, Place
from holdfast.vault.keyring import new_key

ROWS, PAGE, WRITERS = 900, 200, 4
PROGRAM = '''"""A shop whose worker is killed with SIGKILL at one point of its rotation, and whose writers print what they have committed."""
import asyncio, os, signal, sys

from holdfast import Holdfast
from holdfast.jobs.job import Job
from holdfast.runtime import vaulting
from holdfast.vault import Place

hf = Holdfast()
hf.vault.column("accounts", "token", tenant="owner")


def kill_after(pages, call):
    passed = 0

    async def counted(*args, **options):
        nonlocal passed
        answer = await call(*args, **options)
        passed += 1
        if passed == pages:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return counted


match os.environ.get("KILL_AT"):
    case "before commit":  # its rows are written, and the transaction is open
        vaulting.reseal_page = kill_after(2, vaulting.reseal_page)
    case "after commit":
        Job.heartbeat = kill_after(2, Job.heartbeat)


async def write(which):
    async with hf:
        turn = 0
        while True:
            number, turn = 3 * (1 + (turn * 4 + which) % 300), turn + 1  # every third row: the others are the rotation's own
            text = f"by {which} in turn {turn}"
            sealed = hf.vault.seal(text, Place("accounts", "token", str(number), "ada"))
            print("begin", number, text, sep="|", flush=True)
            async with hf.transaction() as tx:
                await tx.execute("UPDATE accounts SET token = $1 WHERE id = $2", sealed, number)
            print("done", number, text, sep="|", flush=True)
            await asyncio.sleep(0.002)


if __name__ == "__main__":
    asyncio.run(write(int(sys.argv[1])))
'''


@pytest.fixture
def processes():
    running = []
    yield running
    for each in running:
        if each.returncode is None:
            each.kill()


@pytest.fixture
def start(url, tmp_path, processes):
    old, new = new_key("2025"), new_key("2026")
    (tmp_path / "sealing.py").write_text(PROGRAM)

    async def started(*command, **variables):
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "HOLDFAST_URL": url, "HOLDFAST_KEYS": f"{new},{old}", **variables},
        )  # fmt: skip
        processes.append(process)
        return process

    started.before, started.after = Keyring.read(old), Keyring.read(f"{new},{old}")
    return started


def place(number):
    return Place("accounts", "token", str(number), "ada")


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("at", "pages"), [("before commit", 1), ("after commit", 2)], ids=["before_commit", "after_commit"]
)
async def test_a_rotation_that_is_killed_goes_on_and_loses_no_write(url, start, at, pages):
    async with Holdfast(url, keys=start.before) as hf:
        hf.vault.column("accounts", "token", tenant="owner")
        async with hf.transaction() as tx:
            await tx.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner TEXT, token TEXT)")
            for number in range(1, ROWS + 1):
                await tx.execute(
                    "INSERT INTO accounts VALUES ($1, 'ada', $2)", number, hf.vault.seal(f"first {number}", place(number))
                )  # fmt: skip
        hf.vault._ring = start.after
        handle = await hf.vault.rotate()

        worker = ("-m", "holdfast", "worker", "sealing:hf", "--lease", "1", "--shutdown-timeout", "3")
        victim = await start(*worker, KILL_AT=at)
        assert await asyncio.wait_for(victim.wait(), 60) == -signal.SIGKILL
        assert await hf.vault.counts() == {
            "accounts.token": {"2026": pages * PAGE, "2025": ROWS - pages * PAGE}
        }

        writers = [await start("sealing.py", str(which)) for which in range(WRITERS)]
        for each in writers:
            await asyncio.wait_for(each.stdout.readline(), 60)  # it writes
        heir = await start(*worker)
        anew = await handle.result(timeout=90)
        said = [await stopped(each) for each in writers]
        heir.send_signal(signal.SIGINT)
        await asyncio.wait_for(heir.wait(), 30)

        left = ROWS - pages * PAGE
        assert left * 2 // 3 <= anew <= left, "what was done is not done again, and the rest is"
        assert await hf.vault.counts() == {"accounts.token": {"2026": ROWS}}
        async with hf.transaction() as tx:
            rows = await tx.fetch("SELECT id, token FROM accounts ORDER BY id")
        found = {number: hf.vault.open(sealed, place(number)).reveal() for number, sealed in rows}
    allowed = {number: {f"first {number}"} for number in range(1, ROWS + 1)}
    for line in chain.from_iterable(said):
        word, number, text = line.split("|")
        if word == "done":
            allowed[int(number)] = {text}
        else:  # killed in the middle of its write: the row has this one, or the one before
            allowed[int(number)].add(text)
    assert {number: text for number, text in found.items() if text not in allowed[number]} == {}
    assert sum(word.startswith("done") for lines in said for word in lines) > 2 * WRITERS


async def stopped(process):
    """Killed in the middle of whatever it does; what it has said, whole lines alone."""
    process.kill()
    said = (await asyncio.wait_for(process.stdout.read(), 30)).decode()
    await process.wait()
    return [line for line in said.split("\n")[:-1] if line.count("|") == 2]
