"""Disks that are full, or fail. Rows 26 and 27."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from faultkit import HERE, SOURCE, on_sqlite
from waiting import until

WORK = """
@hf.task(name="wait", retry=QUICK)
async def wait(job: Job) -> None:
    mark("began", job=job.id)
    await gate("go")
    async with job.commit() as tx:
        await effect(tx, job)

@hf.task(name="large")
async def large(text: str) -> int:
    return len(text)
"""

# Runs where the small disk is mounted: fills it, looks at what was acknowledged, frees some of it, goes on.
FULL = """
import asyncio, json, secrets, subprocess, sys
from pathlib import Path
from holdfast.kernel.errors import StoreFull
from program import hf, large

async def prepare(): ...

async def main(disk):
    await prepare()
    worker = subprocess.Popen([sys.executable, "-m", "holdfast", "worker", "program:hf", "--lease", "30"])
    try:
        async with hf:
            assert await (await large.enqueue("x")).result(20) == 1
            facts = await fill(disk)
            facts["after"] = await (await large.enqueue("y")).result(20)
    finally:
        worker.terminate()
        facts["left"] = worker.wait(20)
    print(json.dumps(facts))

async def fill(disk):
    ballast, handles, refused = Path(disk, "ballast"), [], ""
    ballast.write_bytes(b"x" * 900_000)
    while not refused and len(handles) < 1000:
        try:
            handles.append(await large.options(delay=1).enqueue(secrets.token_hex(25_000)))
        except StoreFull as error:
            refused = str(error)
    present = len([await handle.record() for handle in handles])
    ballast.unlink()
    for handle in handles:
        assert await handle.result(30) == 50_000
    return {"refused": refused, "acked": len(handles), "present": present}
"""

RUN = """
asyncio.run(main(sys.argv[1]))
"""

ON_POSTGRES = """
import os
from tools.postgres import PostgresServer, system_binaries, wheel_binaries, _server_user
server = PostgresServer.start(wheel_binaries() or system_binaries()[-1])
os.environ["HOLDFAST_URL"] = server.url(server.create_database())
"""

RUN_ON_POSTGRES = """
async def prepare():
    import asyncpg
    if (user := _server_user()) is not None:
        os.chown(sys.argv[1], user.pw_uid, user.pw_gid)
    await hf.migrate()
    connection = await asyncpg.connect(os.environ["HOLDFAST_URL"])
    await connection.execute(f"CREATE TABLESPACE small LOCATION '{sys.argv[1]}'")
    await connection.execute("ALTER TABLE holdfast.job SET TABLESPACE small")
    await connection.close()

try:
    asyncio.run(main(sys.argv[1]))
finally:
    server.stop()
"""


@pytest.fixture
def disk():
    """A folder that everyone may enter: the server runs as another user than the tests."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-disk-"))
    folder.chmod(0o755)
    yield folder
    folder.rmdir()


async def test_a_full_disk(tmp_path, disk):
    """Row 26: a SQLite file on a tmpfs of 2.5 MB. What does not fit is refused whole, what was acknowledged is there."""
    url = f"sqlite:///{disk}/jobs.db"
    facts = await _on_a_small_disk(tmp_path, disk, FULL + RUN, "--user", "--map-root-user", HOLDFAST_URL=url)
    assert "No space left for the SQLite file" in facts["refused"]
    assert facts["present"] == facts["acked"] > 3
    assert (facts["after"], facts["left"]) == (1, 0)


async def test_a_full_disk_under_postgres(tmp_path, disk):
    """Row 26: the jobs' table on a tablespace of 2.5 MB. The same holds."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a disk that the server's user may write to")
    facts = await _on_a_small_disk(tmp_path, disk, ON_POSTGRES + FULL + RUN_ON_POSTGRES)
    assert "PostgreSQL has no space left" in facts["refused"]
    assert facts["present"] == facts["acked"] > 3
    assert (facts["after"], facts["left"]) == (1, 0)


async def _on_a_small_disk(folder, disk, script, *options, **environment):
    """Run it where the folder `disk` is a tmpfs of 2.5 MB that nobody else sees; returns the facts that it prints."""
    _needs("unshare", "mount")
    (folder / "program.py").write_text(f"from inside import *\n{WORK}")
    (folder / "script.py").write_text(script)
    run = f"mount -t tmpfs -o size=2500k tmpfs {disk} && exec {sys.executable} script.py {disk}"
    env = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": os.pathsep.join([str(HERE), SOURCE, str(HERE.parents[1])]),
        "FAULTS_FOLDER": str(folder),
        **environment,
    }
    process = await asyncio.create_subprocess_exec(
        "unshare", "--mount", *options, "sh", "-c", run,
        cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 90)
    if b"unshare: " in err or b"mount: " in err:
        pytest.skip(f"a tmpfs cannot be mounted in a namespace here: {err.decode().strip()}")
    assert process.returncode == 0, err.decode()
    return json.loads(out)


@on_sqlite
async def test_a_disk_that_does_not_take_a_flush(fleet):
    """Row 27: fsync fails in the worker. Nothing is told as done that is not; each job is done once when it is well."""
    _needs("strace")
    fleet.program(WORK)
    worker = await fleet.started(lease=3)
    job = await fleet.put("wait")
    await fleet.marked("began")
    command = f"strace -f -qq -o {fleet.folder}/trace -p {worker.pid} -e trace=fsync,fdatasync"
    strace = subprocess.Popen(
        [*command.split(), "-e", "inject=fsync,fdatasync:error=EIO"], stderr=subprocess.PIPE, text=True
    )
    try:
        await until(lambda: strace.poll() is not None or _traced(worker.pid), 10)
        if strace.poll() is not None:
            pytest.skip(f"strace cannot attach here: {strace.stderr.read().strip()}")
        fleet.open("go")
        await worker.says("lost its disk during COMMIT")
    finally:
        strace.terminate()
        strace.communicate()
    done = await fleet.becomes(job)
    assert await fleet.effects() == [(job, done.token)]
    await fleet.becomes(await fleet.put("large", text="x"))


def _traced(pid):
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def _needs(*programs):
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"this machine has no {program}")
