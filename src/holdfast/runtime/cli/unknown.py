"""`holdfast unknown`: jobs with an effect of which nobody knows whether it was done. A person looks, and says so."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Sequence

from holdfast.kernel.codec import decode
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli import shown
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.jobs import add_filters, no_such_job, print_job, tell_next_page
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands, job_id
from holdfast.runtime.cli.steps import undecided
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import cell
from holdfast.store.records import JobRecord
from holdfast.store.states import State
from holdfast.store.steps import Resolved, Undecided

_COLUMNS = (
    Column("id", whole=True),
    Column("task"),
    Column("queue", spare=True),
    Column("effect"),
    Column("since"),
    Column("why"),
)


def add(commands: Commands) -> None:
    _, group = add_group(
        commands, "unknown", about="look at jobs with an effect that nobody knows the end of, and decide"
    )
    add_filters(add_command(group, "list", list_unknown, about="list unknown jobs, the newest first"))
    showing = add_command(group, "show", show, about="show an unknown job with its steps and effects")
    showing.add_argument("id", type=job_id)
    _add_resolve(group)


def _add_resolve(group: Commands) -> None:
    about = "say whether an unknown effect was done; the job goes on from there"
    resolving = add_command(group, "resolve", resolve, about=about, check=_check_resolve)
    resolving.add_argument("id", type=job_id)
    resolving.add_argument("--effect", metavar="NAME", help="which one; needed when several are unknown")
    resolving.add_argument("--done", action="store_true", help="it was done, and will not be done again")
    resolving.add_argument("--result", metavar="JSON", help="with --done: what its call would have returned")
    resolving.add_argument("--not-done", action="store_true", help="it was not done, and will be")


# --- looking ---


async def list_unknown(hf: Holdfast, options: Namespace) -> int:
    records = await hf.store.jobs.find(
        state=State.UNKNOWN,
        task=options.task,
        queue=options.queue,
        before=options.before,
        limit=options.limit,
    )
    effects: dict[str, list[Undecided]] = {record.id: [] for record in records}
    for each in await hf.store.steps.undecided(list(effects)):
        effects[each.job_id].append(each)
    found = [(record, effects[record.id]) for record in records]
    if options.json:
        document({"jobs": [_as_listed(record, effects) for record, effects in found]})
        return DONE
    now = await hf.store.now()
    show_table(_COLUMNS, [_as_row(*each, now) for each in found], nothing="No jobs.")
    tell_next_page(records, options)
    return DONE


def _as_listed(record: JobRecord, effects: Sequence[Undecided]) -> dict[str, object]:
    unknown = [{"effect": each.name, "begun": each.first_at, "since": each.at} for each in effects]
    return {**shown.as_listed(record), "unknown": unknown}


def _as_row(record: JobRecord, effects: Sequence[Undecided], now: float) -> list[object]:
    names = ", ".join(each.name for each in effects) or None
    since = cell(min((each.at for each in effects), default=None), now)
    return [record.id, record.task, record.queue, names, since, record.reason]


async def show(hf: Holdfast, options: Namespace) -> int:
    record = await hf.jobs.get(options.id)
    if record is None:
        return no_such_job(options.id)
    if record.state is not State.UNKNOWN:
        return _not_unknown(record, f"See it with `holdfast jobs show {record.id}`.")
    await print_job(hf, record, options)
    if not options.json:
        _say_what_is_next(record, [each.name for each in undecided(await hf.unknown.steps(record))])
    return DONE


def _say_what_is_next(record: JobRecord, names: Sequence[str]) -> None:
    command = f"  holdfast unknown resolve {record.id}"
    say()
    if not names:
        say("None of its effects is unknown. Run it again, or cancel it:")
        say(f"{command} --not-done")
        say(f"  holdfast jobs cancel {record.id}")
        return
    say(f"Look on the other side whether {_quoted(names)} was done, and say what you found:")
    for name in names:
        which = f" --effect {shlex.quote(name)}" if len(names) > 1 else ""
        say(f"{command}{which} --done --result JSON")
        say(f"{command}{which} --not-done")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _not_unknown(record: JobRecord, advice: str) -> int:
    complain(f"Job {record.id} is {record.state}, not unknown. {advice}")
    return NOT_AS_WISHED


# --- deciding ---


def _check_resolve(options: Namespace) -> None:
    if options.done == options.not_done:
        raise UsageError("Say what you found: --done or --not-done, one of them.")
    if options.result is None:
        return
    if options.not_done:
        raise UsageError("--result is what the call returned: give it with --done.")
    try:
        options.result = decode(options.result, limit=RESULT_LIMIT)
    except PayloadError as error:
        raise UsageError(f"--result: {error} A text has quotation marks: --result '\"a text\"'.") from None


async def resolve(hf: Holdfast, options: Namespace) -> int:
    answer = await hf.unknown.resolve(
        options.id, actor=actor(options), done=options.done, effect=options.effect, result=options.result
    )
    if options.json:
        document({"id": answer.job_id, "outcome": answer.outcome, "unknown": list(answer.open)})
    else:
        await _tell(hf, answer, options)
    return DONE if answer.outcome in ("queued", "still_unknown") else NOT_AS_WISHED


async def _tell(hf: Holdfast, answer: Resolved, options: Namespace) -> None:
    match answer.outcome:
        case "queued":
            told = "what was done is not done again" if options.done else "what was not done will be done"
            say(f"{answer.job_id} is queued again: {told}.")
        case "still_unknown":
            say(f"{answer.job_id} is still unknown. To be decided: {_quoted(answer.open)}.")
        case "say_which":
            complain(
                f"Job {answer.job_id} has several unknown effects. Say which with --effect: {_quoted(answer.open)}."
            )
        case "no_such_effect":
            complain(_no_such_effect(answer, options))
        case _:
            await _tell_not_unknown(hf, answer.job_id)


def _no_such_effect(answer: Resolved, options: Namespace) -> str:
    if answer.open:
        return (
            f"Job {answer.job_id} has no unknown effect {options.effect!r}. Unknown: {_quoted(answer.open)}."
        )
    return (
        f"Job {answer.job_id} is unknown, but none of its effects is. "
        "Run it again with --not-done and no --effect, or cancel it with `holdfast jobs cancel`."
    )


async def _tell_not_unknown(hf: Holdfast, wanted: str) -> None:
    record = await hf.jobs.get(wanted)
    if record is None:
        no_such_job(wanted)
    else:
        _not_unknown(record, "It stays as it is.")
