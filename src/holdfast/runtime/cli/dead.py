"""`holdfast dead`: jobs that will not run again unless a person says so."""

from __future__ import annotations

from argparse import Namespace

from holdfast.kernel.codec import decode
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.jobs import add_filters, no_such_job, print_job, print_jobs
from holdfast.runtime.cli.output import complain, document, say
from holdfast.runtime.cli.parser import Commands, job_id, rate
from holdfast.runtime.cli.replays import replay_all, replay_listed, tell
from holdfast.store.states import State


def add(commands: Commands) -> None:
    _, group = add_group(commands, "dead", about="look at dead jobs, replay or discard them")
    add_filters(add_command(group, "list", list_dead, about="list dead jobs, the newest first"))
    showing = add_command(group, "show", show, about="show a dead job with its errors")
    showing.add_argument("id", type=job_id)
    _add_replay(group)
    discarding = add_command(group, "discard", discard, about="cancel dead jobs for good")
    discarding.add_argument("ids", nargs="+", type=job_id, metavar="id")
    discarding.add_argument("--reason", required=True, help="kept with the jobs and in the audit rows")


def _add_replay(group: Commands) -> None:
    about = "queue dead jobs again, as if nothing had been tried"
    replaying = add_command(group, "replay", replay, about=about, check=_check_replay)
    replaying.add_argument("ids", nargs="*", type=job_id, metavar="id")
    replaying.add_argument(
        "--all", action="store_true", help="all that are dead now, or pass --task and --queue"
    )
    replaying.add_argument("--task", help="with --all: only those of this task")
    replaying.add_argument("--queue", help="with --all: only those of this queue")
    replaying.add_argument("--rate", type=rate, help="at most so many a second")
    replaying.add_argument(
        "--args",
        metavar="JSON",
        help="other arguments for one job, all of them; a secret given as *** stays as it is",
    )


async def list_dead(hf: Holdfast, options: Namespace) -> int:
    records = await hf.store.jobs.find(
        state=State.DEAD, task=options.task, queue=options.queue, before=options.before, limit=options.limit
    )
    await print_jobs(hf, records, options)
    return DONE


async def show(hf: Holdfast, options: Namespace) -> int:
    record = await hf.jobs.get(options.id)
    if record is None:
        return no_such_job(options.id)
    if record.state is not State.DEAD:
        complain(
            f"Job {record.id} is {record.state}, not dead. See it with `holdfast jobs show {record.id}`."
        )
        return NOT_AS_WISHED
    await print_job(hf, record, options)
    return DONE


async def replay(hf: Holdfast, options: Namespace) -> int:
    if options.args is not None:
        return await _replay_edited(hf, options)
    if options.all:
        return await replay_all(hf, options)
    return await replay_listed(hf, options.ids, options, rate=options.rate)


def _check_replay(options: Namespace) -> None:
    if bool(options.ids) == options.all:
        raise UsageError("Say which dead jobs to replay: their ids, or --all.")
    if not options.all and (options.task or options.queue):
        raise UsageError("--task and --queue choose among all dead jobs: give them with --all, without ids.")
    if options.args is not None and len(options.ids) != 1:
        raise UsageError("--args is for one job: give one id with it.")
    if options.args is not None:
        options.args = _arguments(options.args)


async def _replay_edited(hf: Holdfast, options: Namespace) -> int:
    [wanted] = options.ids
    record = await hf.jobs.get(wanted)
    if record is None:
        return no_such_job(wanted)
    if record.state is not State.DEAD:
        complain(f"Job {wanted} is {record.state}, not dead. Only a dead job can be given other arguments.")
        return NOT_AS_WISHED
    answer = await hf.dead.replay_edited(wanted, options.args, actor=actor(options))
    if options.json:
        document({"jobs": [{"id": answer.job_id, "outcome": answer.outcome}]})
    else:
        await tell(hf, answer)
    return DONE if answer.outcome == "queued" else NOT_AS_WISHED


def _arguments(text: str) -> dict[str, object]:
    try:
        found = decode(text)
    except PayloadError as error:
        raise UsageError(f"--args: {error}") from None
    if not isinstance(found, dict):
        raise UsageError("--args is an object with the arguments by name, such as '{\"user_id\": 42}'.")
    return found


async def discard(hf: Holdfast, options: Namespace) -> int:
    ids = list(dict.fromkeys(options.ids))
    answers = await hf.dead.discard(ids, actor=actor(options), reason=options.reason)
    if options.json:
        document({"jobs": [{"id": each, "done": done} for each, done in zip(ids, answers, strict=True)]})
        return DONE if all(answers) else NOT_AS_WISHED
    for each, done in zip(ids, answers, strict=True):
        if done:
            say(f"{each} is cancelled.")
        else:
            complain(f"Job {each} is not dead, or there is none; it stays as it is.")
    return DONE if all(answers) else NOT_AS_WISHED
