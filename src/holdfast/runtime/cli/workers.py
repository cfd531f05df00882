"""`holdfast workers`: who is alive, what each serves and runs, and who has died lately."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import msgspec

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.colour import STATES
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_fields, show_table
from holdfast.runtime.cli.parser import Commands, count
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import ago, cell, span, told
from holdfast.store.worker_records import WorkerRecord, WorkerState

_MOST = 1_000_000  # as many as there are: a name is looked for among all
_WORKERS = (
    Column("name", whole=True),
    Column("state", colours=STATES),
    Column("host"),
    Column("queues"),
    Column("runs"),
    Column("up", spare=True),
    Column("seen", spare=True),
    Column("version", spare=True),
)
_JOBS = (Column("id", whole=True), Column("task"), Column("queue"), Column("since"))


def add(commands: Commands) -> None:
    about = "list who is alive, what each serves and runs, and who has died within a day"
    parser, group = add_group(commands, "workers", about=about, act=list_workers)
    parser.add_argument("--limit", type=count, default=100, help="at most so many (100)")
    listing = add_command(group, "list", list_workers, about="list the workers, as `workers` alone does")
    listing.add_argument("--limit", type=count, default=100, help="at most so many (100)")
    showing = add_command(group, "show", show, about="show a worker with its tasks and the jobs that it runs")
    showing.add_argument("name", help="as `holdfast workers` shows it, or the beginning of it")


async def list_workers(hf: Holdfast, options: Namespace) -> int:
    found = await hf.workers.list(limit=options.limit)
    if options.json:
        document({"workers": [as_plain(each) for each in found]})
        return DONE
    now = await hf.store.now()
    show_table(
        _WORKERS,
        [_row(each, now) for each in found],
        nothing="No worker is alive, and none died within a day.",
    )
    return DONE


def as_plain(worker: WorkerRecord) -> dict[str, Any]:
    """The stable keys of a worker."""
    plain: dict[str, Any] = msgspec.to_builtins(worker)
    return plain


def _row(worker: WorkerRecord, now: float) -> list[object]:
    return [
        worker.name,
        _state(worker, now),
        f"{worker.host}:{worker.pid}",
        _queues(worker),
        _runs(worker, now),
        span(now - worker.started_at) if worker.state is not WorkerState.DEAD else None,
        cell(worker.seen_at, now),
        worker.version,
    ]


def _state(worker: WorkerRecord, now: float) -> str:
    return f"dead, {ago(worker.until, now)}" if worker.state is WorkerState.DEAD else str(worker.state)


def _queues(worker: WorkerRecord) -> str:
    """As `-q` takes them."""
    if worker.role == "relay":
        return "(publishes events)"
    return ",".join(f"{queue}:{slots}" for queue, slots in worker.queues.items())


def _runs(worker: WorkerRecord, now: float) -> str | None:
    """`3: mail.send for 12 s`, of the job that runs longest; of a dead one what became of its jobs."""
    put_back = f"{worker.rescued:,} put back" if worker.rescued else None
    if not worker.running:
        return put_back if worker.state is WorkerState.DEAD else None
    longest = worker.running[0]
    return f"{worker.running_count:,}: {longest.task} for {span(now - longest.since)}"


async def show(hf: Holdfast, options: Namespace) -> int:
    found = [each for each in await hf.workers.list(limit=_MOST) if each.name.startswith(options.name)]
    found = [each for each in found if each.name == options.name] or found
    if len(found) != 1:
        return _not_one(options.name, found)
    [worker] = found
    if options.json:
        document({"worker": as_plain(worker)})
        return DONE
    _show(worker, await hf.store.now())
    return DONE


def _not_one(wanted: str, found: list[WorkerRecord]) -> int:
    if found:
        complain(
            f"{wanted!r} is the beginning of several names: {', '.join(each.name for each in found[:10])}."
        )
    else:
        complain(
            f"There is no worker {wanted!r}: it has left, or died long ago. `holdfast workers` lists them."
        )
    return NOT_AS_WISHED


def _show(worker: WorkerRecord, now: float) -> None:
    dead = worker.state is WorkerState.DEAD
    show_fields(
        [
            ("name", worker.name),
            ("role", worker.role),
            ("state", _state(worker, now)),
            ("host", worker.host),
            ("process", worker.pid),
            ("version", f"Holdfast {worker.version}"),
            ("queues", _queues(worker)),
            ("tasks", "\n".join(worker.tasks) or None),
            ("started", told(worker.started_at, now)),
            ("seen", told(worker.seen_at, now)),
            ("put back", f"{worker.rescued:,} of its jobs" if worker.rescued else None),
            ("runs", "nothing" if not worker.running and not dead else None),
        ]
    )
    if worker.running:
        say()
        rows = [[job.id, job.task, job.queue, cell(job.since, now)] for job in worker.running]
        show_table(_JOBS, rows, nothing="")
        if worker.running_count > len(worker.running):
            complain(f"only {len(worker.running)} of {worker.running_count:,} are shown.")
