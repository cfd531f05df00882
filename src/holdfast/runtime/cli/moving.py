"""`holdfast jobs move`: another time or priority for queued jobs."""

from __future__ import annotations

import json
from argparse import Namespace

from holdfast.kernel.errors import UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command
from holdfast.runtime.cli.output import complain, document, say
from holdfast.runtime.cli.parser import Commands, coming, job_id
from holdfast.runtime.cli.times import ago
from holdfast.store.records import AuditEntry, JobRecord
from holdfast.store.states import State


def add(commands: Commands) -> None:
    about = "give queued jobs another time or priority; they keep all else"
    moving = add_command(commands, "move", move, about=about, check=_check)
    moving.add_argument("ids", nargs="+", type=job_id, metavar="id")
    moving.add_argument(
        "--at",
        type=coming,
        metavar="WHEN",
        help="when: now, 90s, 30min, 2h or 7d from now, or 2026-11-16T10:00",
    )
    moving.add_argument("--priority", type=int, help="from -100 to 100; higher runs first")


def _check(options: Namespace) -> None:
    if options.at is None and options.priority is None:
        raise UsageError("Say where to: --at WHEN, --priority N, or both.")


async def move(hf: Holdfast, options: Namespace) -> int:
    answers = [await _move(hf, each, options) for each in dict.fromkeys(options.ids)]
    if options.json:
        document({"jobs": answers})
    return DONE if all(answer["done"] for answer in answers) else NOT_AS_WISHED


async def _move(hf: Holdfast, wanted: str, options: Namespace) -> dict[str, object]:
    async with hf.transaction() as tx:
        before = await hf.store.jobs.get(wanted, tx=tx)
        met = await hf.jobs.move(wanted, at=options.at, priority=options.priority, tx=tx)
        if before is not None and met is State.QUEUED:
            await hf.store.audit.write(_entry(before, options), tx=tx)
    if not options.json:
        _tell(wanted, met, options, await hf.store.now())
    return {"id": wanted, "state": met, "done": met is State.QUEUED}


def _entry(before: JobRecord, options: Namespace) -> AuditEntry:
    return AuditEntry(
        actor=actor(options),
        action="job.move",
        subject=before.id,
        before=json.dumps({"at": before.run_at, "priority": before.priority}),
        after=json.dumps({"at": options.at, "priority": options.priority}),
    )


def _tell(wanted: str, met: State | None, options: Namespace, now: float) -> None:
    if met is None:
        complain(f"There is no job {wanted}: it was never stored here, or it is over and was pruned.")
    elif met is not State.QUEUED:
        complain(f"Job {wanted} is {met}, not queued; it was left alone.")
    else:
        when = (
            [] if options.at is None else ["due now" if options.at <= now else f"due {ago(options.at, now)}"]
        )
        rank = [] if options.priority is None else [f"of priority {options.priority}"]
        say(f"{wanted} is {' and '.join(when + rank)}.")
