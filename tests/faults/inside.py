"""What test programs import: their Holdfast, marks that outlive a kill, gates, and crash points armed from outside."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path

from holdfast import Backoff, Event, Found, Holdfast, Job, NotFound, Tx
from holdfast.kernel.crashpoints import armed

__all__ = [
    "QUICK",
    "Backoff",
    "Event",
    "Found",
    "Holdfast",
    "Job",
    "NotFound",
    "Tx",
    "asyncio",
    "effect",
    "gate",
    "hf",
    "mark",
    "marked",
    "opened",
    "os",
    "time",
]

FOLDER = Path(os.environ["FAULTS_FOLDER"])
QUICK = Backoff(attempts=5, first=0.05, ceiling=0.2)
hf = Holdfast()


def mark(kind: str, **facts: object) -> None:
    """One line in a file that the test reads; a process that is killed afterwards does not lose it."""
    line = json.dumps({"kind": kind, "pid": os.getpid(), "at": time.time(), **facts})
    file = os.open(FOLDER / "marks", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode() + b"\n")
    os.close(file)


def marked(kind: str, **facts: object) -> bool:
    """Whether some process has made such a mark."""
    lines = (FOLDER / "marks").read_text().splitlines() if (FOLDER / "marks").exists() else []
    return any({"kind": kind, **facts}.items() <= json.loads(line).items() for line in lines)


def opened(name: str) -> bool:
    """Whether the test has opened this gate."""
    return (FOLDER / f"gate-{name}").exists()


async def gate(name: str) -> None:
    while not opened(name):
        await asyncio.sleep(0.01)


async def effect(tx, job: Job, kind: str = "effect") -> None:
    """A row that commits with the job's success, or not at all."""
    await tx.execute("INSERT INTO effects (job, token, kind) VALUES ($1, $2, $3)", job.id, job.token, kind)


def _die_once(name: str) -> None:
    """The first who comes here is killed; those who take its place walk past."""
    try:
        os.close(os.open(FOLDER / f"crashed-{name}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    mark("crash", point=name)
    os.kill(os.getpid(), signal.SIGKILL)


def _freeze_once(name: str) -> None:
    """The first who comes here stands still until the test wakes it."""
    try:
        os.close(os.open(FOLDER / f"frozen-{name}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    mark("frozen", point=name)
    os.kill(os.getpid(), signal.SIGSTOP)


_armed = ExitStack()  # kept: who lets go of it disarms
if (_name := os.environ.get("HOLDFAST_CRASH")) is not None:
    _armed.enter_context(armed(_name, _die_once))
if (_name := os.environ.get("HOLDFAST_FREEZE")) is not None:
    _armed.enter_context(armed(_name, _freeze_once))
