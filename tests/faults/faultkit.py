"""Real workers for fault tests: a program is written, started, frozen, killed; facts are waited for, effects counted."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest
from waiting import until

from holdfast import Holdfast
from holdfast.kernel.codec import encode
from holdfast.kernel.ids import new_id
from holdfast.store.records import JobRecord, NewJob
from holdfast.store.states import State
from tools.processes import PATIENCE, SOURCE, Process, environment, worker_command

__all__ = ["HERE", "ROOT", "SOURCE", "Fleet", "on_postgres", "on_sqlite"]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LEASE = 2.5
on_sqlite = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("url", ["postgres"], indirect=True)


class Fleet:
    """A program, its database and its processes."""

    def __init__(self, hf: Holdfast, url: str, folder: Path) -> None:
        self.hf, self.url, self.folder = hf, url, folder
        self.processes: list[Process] = []

    async def prepare(self) -> None:
        async with self.hf.transaction() as tx:
            await tx.execute("DROP TABLE IF EXISTS effects")
            await tx.execute("CREATE TABLE effects (job TEXT, token BIGINT, kind TEXT)")

    # --- programs and processes ---

    def program(self, text: str, name: str = "program") -> None:
        """A module that `start` can name; what it needs is imported already."""
        (self.folder / f"{name}.py").write_text(f"from inside import *\n{textwrap.dedent(text)}")

    def start(
        self,
        *options: str,
        lease: float = LEASE,
        url: str | None = None,
        program: str = "program",
        before: tuple[str, ...] = (),
        said: int | None = None,
        verb: str = "worker",
        **given: str,
    ) -> Process:
        """`python -m holdfast worker program:hf`, through `url` when that is another way to the same database.

        What it says goes into its log, or to `said`, the descriptor of a pipe.
        """
        if verb == "worker":
            command = [*before, *worker_command(f"{program}:hf", *options, lease=lease)]
        else:
            command = [sys.executable, "-m", "holdfast", verb, f"{program}:hf", *options]
        settings = {"HOLDFAST_URL": url or self.url, "FAULTS_FOLDER": str(self.folder), **given}
        folders = [*given.get("PYTHONPATH", "").split(), HERE]
        log = self.folder / f"log-{len(self.processes)}"
        process = Process(command, self.folder, environment(folders, **settings), log, said)
        self.processes.append(process)
        return process

    async def started(self, *options: str, **settings) -> Process:
        """The same, and wait until it takes jobs."""
        process = self.start(*options, **settings)
        await process.says("takes jobs from")
        return process

    def end_all(self) -> None:
        for process in self.processes:
            process.destroy()

    # --- jobs ---

    async def put(
        self, task: str, *, job_id: str | None = None, options: dict | None = None, **args: object
    ) -> str:
        """Store one job of the program's; returns its id."""
        job = NewJob(id=job_id or new_id(), task=task, args=encode(args), **(options or {}))
        [stored] = await self.hf.store.jobs.enqueue([job])
        return stored.id

    async def put_many(
        self, task: str, count: int, *, options: dict | None = None, **args: object
    ) -> list[str]:
        jobs = [NewJob(id=new_id(), task=task, args=encode(args), **(options or {})) for _ in range(count)]
        return [stored.id for stored in await self.hf.store.jobs.enqueue(jobs)]

    async def record(self, job_id: str) -> JobRecord:
        record = await self.hf.jobs.get(job_id)
        assert record is not None, f"job {job_id} is gone"
        return record

    async def becomes(
        self, job_id: str, state: State = State.SUCCEEDED, seconds: float = PATIENCE
    ) -> JobRecord:
        """Wait until the job is in this state."""
        return (await self.all_become([job_id], state, seconds))[0]

    async def all_become(
        self, job_ids: list[str], state: State = State.SUCCEEDED, seconds: float = PATIENCE
    ) -> list[JobRecord]:
        async def there() -> list[JobRecord]:
            records = [await self.record(job_id) for job_id in waiting]
            waiting[:] = [each.id for each in records if each.state is not state]
            return not waiting

        waiting = list(job_ids)
        try:
            await until(there, seconds)
        except AssertionError:
            raise AssertionError(await self._what_happened(waiting, state, seconds)) from None
        return [await self.record(job_id) for job_id in job_ids]

    async def _what_happened(self, job_ids: list[str], state: State, seconds: float) -> str:
        records = [await self.record(job_id) for job_id in job_ids[:3]]
        logs = "\n".join(f"--- {process.pid}:\n{process.log}" for process in self.processes)
        return f"{len(job_ids)} jobs did not become {state} in {seconds:g} s: {records}\n{logs}"

    async def effects(self, kind: str | None = None) -> list[tuple[str, int]]:
        """Committed rows: (job, token)."""
        async with self.hf.transaction() as tx:
            rows = await tx.fetch("SELECT job, token, kind FROM effects")
        return [(job, token) for job, token, found in rows if kind in (None, found)]

    # --- facts from inside ---

    def marks(self, kind: str, **facts: object) -> list[dict]:
        file = self.folder / "marks"
        lines = file.read_text().splitlines() if file.exists() else []
        found = [json.loads(line) for line in lines]
        return [each for each in found if each["kind"] == kind and facts.items() <= each.items()]

    async def marked(
        self, kind: str, count: int = 1, seconds: float = PATIENCE, **facts: object
    ) -> list[dict]:
        """Wait for so many marks of this kind."""
        try:
            await until(lambda: len(self.marks(kind, **facts)) >= count, seconds)
        except AssertionError:
            logs = "\n".join(f"--- {process.pid}:\n{process.log}" for process in self.processes)
            found = self.marks(kind)
            raise AssertionError(
                f"no {count} marks {kind!r} {facts} in {seconds:g} s: {found}\n{logs}"
            ) from None
        return self.marks(kind, **facts)

    def open(self, gate: str) -> None:
        (self.folder / f"gate-{gate}").touch()
