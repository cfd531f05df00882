"""For tests of the command line: a program with tasks and schedules, jobs in every state, and a way to run commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done, Unknown
from holdfast.runtime.cli import main
from holdfast.runtime.config import locate, open_store
from holdfast.store.records import Finish, NewJob
from holdfast.store.steps import Kind, Progress, Step

PROGRAM = '''"""A shop."""

from holdfast import Holdfast, Secret

hf = Holdfast()


@hf.task(name="mail.send", queue="mail")
async def send(user_id: int, password: Secret[str] = "") -> None: ...


@hf.cron("30 2 * * *", tz="Europe/Zurich", name="report.nightly")
async def nightly() -> None: ...


@hf.every(300, name="cache.warm")
async def warm() -> None: ...
'''
SECRET_ARGS = '{"user_id":7,"password":"geheim","$secret":["password"]}'


def write_program(folder: Path, text: str = PROGRAM, name: str = "shop") -> None:
    (folder / f"{name}.py").write_text(text)


def _would_end_the_tests(*_):
    raise AssertionError("a worker ends its process a while after it has left: start it by run_process()")


class Line:
    """Runs commands in this process, and keeps what they printed."""

    def __init__(self, capsys) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        self._capsys.readouterr()
        with patch("holdfast.runtime.worker_process.unless_ended", _would_end_the_tests):
            code = main([str(argument) for argument in arguments])
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *arguments: str):
        self(*arguments, "--json")
        return json.loads(self.out)


def run_process(*arguments: str, folder: Path, environment: dict[str, str] | None = None):
    """`python -m holdfast` as a person starts it."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST", "DATABASE"))
    }
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        cwd=folder,
        env=kept | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


class Kept:
    """A store beside the command line, for what a test puts in and looks up. Use it as `async with Kept(url) as store`."""

    def __init__(self, url: str) -> None:
        self._store = open_store(locate(url))

    async def __aenter__(self):
        await self._store.open()
        return self._store

    async def __aexit__(self, *error: object) -> None:
        await self._store.close()


async def put(store, number: int = 1, **options) -> list[str]:
    """In the order of their ids, which within one millisecond is a matter of chance."""
    ids = sorted(new_id() for _ in range(number))
    await store.jobs.enqueue(
        [NewJob(**{"id": each, "task": "mail.send", "queue": "mail", **options}) for each in ids]
    )
    return ids


async def put_dead(store, number: int = 1, error: str = "ValueError: no such user", **options) -> list[str]:
    ids = await put(store, number, **options)
    await _end(store, ids, Dead(error), options.get("queue", "mail"))
    return ids


UNKNOWN = "Nobody knows whether effect 'publish' was done: TimeoutError: no answer."
UPLOADED = Step(name="upload", number=0, result='{"file":17}')


def unknown_effect(name: str, number: int = 1) -> Step:
    return Step(name=name, number=number, kind=Kind.AT_MOST_ONCE, progress=Progress.UNKNOWN, fingerprint="f")


async def put_unknown(store, *effects: str, steps=(UPLOADED,), **options) -> str:
    """A job that has uploaded something, and of whose effects nobody knows whether they were done."""
    [job_id] = await put(store, **options)
    [claim] = await store.claims.claim({options.get("queue", "mail"): 1}, lease=30, worker="w1")
    wanted = [unknown_effect(name, number) for number, name in enumerate(effects, start=10)]
    for step in [*steps, *wanted]:
        assert await store.steps.write(claim, step)
    assert await store.claims.finish([Finish(claim, Unknown(UNKNOWN))]) == [True]
    return job_id


async def put_done(store, **options) -> str:
    [job_id] = await put(store, **options)
    await _end(store, [job_id], Done('"sent"'), options.get("queue", "mail"))
    return job_id


async def put_running(store, lease: float = 30.0, **options) -> str:
    [job_id] = await put(store, **options)
    claims = await store.claims.claim({options.get("queue", "mail"): 1}, lease=lease, worker="w1")
    assert [claim.job_id for claim in claims] == [job_id]
    return job_id


async def _end(store, ids, outcome, queue) -> None:
    claims = await store.claims.claim({queue: len(ids)}, lease=30, worker="w1")
    assert {claim.job_id for claim in claims} == set(ids), "only these should be ready in their queue"
    assert all(await store.claims.finish([Finish(claim, outcome) for claim in claims]))


async def audit(store, subject):
    return [(entry.actor, entry.action) for entry in await store.audit.find(subject=subject)]
