"""`holdfast jobs`: look at jobs, cancel them, run a dead one again."""

from __future__ import annotations

import json
from argparse import Namespace

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli import moving, shown, story
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands, Parser, count, job_id
from holdfast.runtime.cli.replays import replay_listed
from holdfast.runtime.cli.steps import as_steps
from holdfast.sagas.saga import PREFIX
from holdfast.store.records import AuditEntry, JobRecord
from holdfast.store.states import OVER, Held, State

_AUDIT_ROWS = 50


def add(commands: Commands) -> None:
    _, group = add_group(commands, "jobs", about="look at jobs, cancel them, run a dead one again")
    listing = add_command(group, "list", list_jobs, about="list jobs, the newest first")
    listing.add_argument(
        "--state",
        choices=[str(state) for state in State],
        help="only these: " + ", ".join(State),
        metavar="STATE",
    )
    listing.add_argument(
        "--held",
        choices=[str(held) for held in Held],
        help="only those held for this reason: " + ", ".join(Held),
        metavar="REASON",
    )
    listing.add_argument("--tenant", help="only those of this tenant")
    add_filters(listing)
    showing = add_command(group, "show", show, about="show all that is known of a job")
    showing.add_argument("id", type=job_id)
    story.add(group)
    cancelling = add_command(group, "cancel", cancel, about="cancel jobs; those that run are asked to stop")
    cancelling.add_argument("ids", nargs="+", type=job_id, metavar="id")
    cancelling.add_argument("--reason", default="cancelled by hand", help="kept with the job")
    cancelling.add_argument(
        "--not-running", action="store_true", help="leave those that run alone, and say which"
    )
    moving.add(group)
    retrying = add_command(group, "retry", retry, about="queue dead jobs again: the same as `dead replay`")
    retrying.add_argument("ids", nargs="+", type=job_id, metavar="id")


def add_filters(parser: Parser) -> None:
    parser.add_argument("--queue", help="only those of this queue")
    parser.add_argument("--task", help="only those of this task")
    parser.add_argument(
        "--before", type=job_id, metavar="ID", help="only jobs older than this one: the next page"
    )
    parser.add_argument("--limit", type=count, default=50, help="at most so many (50)")


async def list_jobs(hf: Holdfast, options: Namespace) -> int:
    records = await hf.store.jobs.find(
        state=None if options.state is None else State(options.state),
        held=None if options.held is None else Held(options.held),
        queue=options.queue,
        task=options.task,
        tenant=options.tenant,
        before=options.before,
        limit=options.limit,
    )
    await print_jobs(hf, records, options)
    return DONE


async def print_jobs(hf: Holdfast, records: list[JobRecord], options: Namespace) -> None:
    records = await hf.store.holds.explained(records)
    sagas = await hf.store.sagas.states([each.id for each in records if each.task.startswith(PREFIX)])
    if options.json:
        document({"jobs": [shown.as_listed(each) | {"saga": sagas.get(each.id)} for each in records]})
        return
    now = await hf.store.now()
    rows = [shown.as_row(record, now, sagas.get(record.id)) for record in records]
    show_table(shown.JOBS, rows, nothing="No jobs.")
    tell_next_page(records, options)


def tell_next_page(records: list[JobRecord], options: Namespace) -> None:
    if len(records) == options.limit:
        complain(f"only {options.limit} are shown; the next ones: --before {records[-1].id}")


async def show(hf: Holdfast, options: Namespace) -> int:
    record = await hf.jobs.get(options.id)
    if record is None:
        return no_such_job(options.id)
    await print_job(hf, record, options)
    return DONE


async def print_job(hf: Holdfast, record: JobRecord, options: Namespace) -> None:
    """With its steps: those of an earlier generation belong to other arguments."""
    steps = await hf.unknown.steps(record)
    audit = await hf.store.audit.find(subject=record.id, limit=_AUDIT_ROWS)
    saga = (await hf.store.sagas.states([record.id])).get(record.id)
    if options.json:
        document(
            {
                "job": shown.as_whole(record) | {"saga": saga},
                "steps": as_steps(record, steps),
                "audit": [shown.as_audited(entry) for entry in audit],
            }
        )
    else:
        shown.show_job(record, steps, audit, await hf.store.now(), saga)


def no_such_job(wanted: str) -> int:
    complain(f"There is no job {wanted}: it was never stored here, or it is over and was pruned.")
    return NOT_AS_WISHED


async def cancel(hf: Holdfast, options: Namespace) -> int:
    answers = [await _cancel(hf, each, options) for each in dict.fromkeys(options.ids)]
    if options.json:
        document({"jobs": answers})
    return DONE if all(answer["done"] for answer in answers) else NOT_AS_WISHED


async def _cancel(hf: Holdfast, wanted: str, options: Namespace) -> dict[str, object]:
    before = await hf.jobs.get(wanted)
    running = not options.not_running
    after = None if before is None else await hf.jobs.cancel(wanted, options.reason, running=running)
    done = before is not None and after is not None and before.state not in OVER
    done = done and (running or after is State.CANCELLED)
    if done and before is not None:
        await _note_cancel(hf, before, str(after), options)
    if not options.json:
        _tell_cancel(wanted, before, after, running=running)
    return {"id": wanted, "state": after, "done": done}


async def _note_cancel(hf: Holdfast, before: JobRecord, after: str, options: Namespace) -> None:
    entry = AuditEntry(
        actor=actor(options),
        action="job.cancel",
        subject=before.id,
        before=json.dumps({"state": before.state}),
        after=json.dumps({"state": after, "reason": options.reason}),
    )
    await hf.store.audit.write(entry)


def _tell_cancel(wanted: str, before: JobRecord | None, after: State | None, *, running: bool) -> None:
    if before is None or after is None:
        no_such_job(wanted)
    elif before.state in OVER:
        complain(f"Job {wanted} is {before.state} already; there is nothing to cancel.")
    elif not running and after is not State.CANCELLED:
        complain(f"Job {wanted} {'runs' if after is State.RUNNING else f'is {after}'}; it was left alone.")
    elif after is State.RUNNING:
        say(f"{wanted} runs, and is asked to stop.")
    else:
        say(f"{wanted} is {after}.")


async def retry(hf: Holdfast, options: Namespace) -> int:
    return await replay_listed(hf, options.ids, options)
