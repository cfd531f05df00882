"""`holdfast sagas`: look at sagas and what they have done, have them undone, let those go on that need a person."""

from __future__ import annotations

import shlex
from argparse import Namespace
from typing import Any

import msgspec

from holdfast.kernel.codec import decode, encode
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_fields, show_table
from holdfast.runtime.cli.parser import Commands, Parser, count, job_id
from holdfast.runtime.cli.table import Column, clean, shortened
from holdfast.runtime.cli.times import cell, told
from holdfast.sagas.timeline import Entry, History, history
from holdfast.store.saga_records import STUCK, SagaAnswer, SagaRecord, SagaState
from holdfast.store.saga_verdicts import UNDO, to_decide

_LISTED = (
    Column("id", whole=True),
    Column("saga"),
    Column("state"),
    Column("started", spare=True),
    Column("since"),
    Column("why"),
)
_TIMELINE = (Column("at"), Column("what"), Column("name"), Column("told"))
_TOLD_SHOWN = 100  # places: a result may have 256 KiB, and `--json` has all of it


def add(commands: Commands) -> None:
    _, group = add_group(commands, "sagas", about="look at sagas, have them undone, let stuck ones go on")
    _add_list(group)
    showing = add_command(
        group, "show", show, about="show a saga, what it has done, and what a person can do"
    )
    _add_id(showing)
    telling = add_command(group, "history", show_history, about="tell a saga's story, in the order of time")
    _add_id(telling)
    cancelling = add_command(
        group, "cancel", cancel, about="have a saga undone: what it has done is compensated"
    )
    _add_id(cancelling)
    cancelling.add_argument("--reason", default="cancelled by hand", help="kept with the saga")
    cancelling.add_argument("--done-too", action="store_true", help="also when it is done")
    signalling = add_command(
        group, "signal", signal, about="send a saga a value that it waits for", check=_check_signal
    )
    _add_id(signalling)
    signalling.add_argument("name", help="of the signal")
    signalling.add_argument("--value", metavar="JSON", default="null", help="what is sent (null)")
    retrying = add_command(group, "retry", retry, about="let a saga that needs a person, or is parked, go on")
    _add_id(retrying)
    undoing = add_command(group, "retry-undo", retry_undo, about="the same, for one whose undo has failed")
    _add_id(undoing)
    _add_settle(group)


def _add_id(parser: Parser) -> None:
    parser.add_argument("id", help="of the saga")


def _add_list(group: Commands) -> None:
    listing = add_command(group, "list", list_sagas, about="list sagas, the newest first")
    listing.add_argument(
        "--state",
        choices=[str(state) for state in SagaState],
        help="only these: " + ", ".join(SagaState),
        metavar="STATE",
    )
    listing.add_argument("--name", help="only those of this name")
    listing.add_argument("--job", type=job_id, metavar="ID", help="the one that this job carries")
    listing.add_argument("--before", metavar="ID", help="only sagas older than this one: the next page")
    listing.add_argument("--limit", type=count, default=50, help="at most so many (50)")


def _add_settle(group: Commands) -> None:
    about = "say whether a step, or an undo, was done; the saga goes on from there"
    settling = add_command(group, "settle", settle, about=about, check=_check_settle)
    _add_id(settling)
    settling.add_argument("step", help=f"which one; the undo of a step is called {UNDO}STEP")
    settling.add_argument("--done", action="store_true", help="it was done, and will not be done again")
    settling.add_argument("--result", metavar="JSON", help="with --done: what its call would have returned")
    settling.add_argument("--not-done", action="store_true", help="it was not done, and will be")


# --- looking ---


async def list_sagas(hf: Holdfast, options: Namespace) -> int:
    if options.job is not None:
        found = await hf.store.sagas.of_job(options.job)
        records = [] if found is None else [found]
    else:
        records = await hf.store.sagas.find(
            state=None if options.state is None else SagaState(options.state),
            name=options.name,
            before=options.before,
            limit=options.limit,
        )
    if options.json:
        document({"sagas": [as_listed(record) for record in records]})
        return DONE
    now = await hf.store.now()
    show_table(_LISTED, [_as_row(record, now) for record in records], nothing="No sagas.")
    if len(records) == options.limit:
        complain(f"only {options.limit} are shown; the next ones: --before {shlex.quote(records[-1].id)}")
    return DONE


def as_listed(record: SagaRecord) -> dict[str, Any]:
    found = msgspec.structs.asdict(record)
    del found["result"], found["now"]
    return found


def _as_row(record: SagaRecord, now: float) -> list[object]:
    why = record.waits or (record.error or "").partition("\n")[0] or None
    return [record.id, record.name, record.state, cell(record.started_at, now), cell(record.at, now), why]


async def show(hf: Holdfast, options: Namespace) -> int:
    found = await history(hf.store, options.id)
    if found is None:
        return _no_such_saga(options.id)
    if options.json:
        document(found.as_json())
        return DONE
    now = await hf.store.now()
    show_fields(_fields(found, now))
    say()
    _show_timeline(found, now)
    if found.saga.state in STUCK:
        _say_what_is_next(found)
    return DONE


def _fields(found: History, now: float) -> list[tuple[str, object]]:
    saga = found.saga
    return [
        ("id", saga.id),
        ("saga", saga.name),
        (
            "state",
            f"{saga.state}, on the way back" if saga.undoing and saga.finished_at is None else saga.state,
        ),
        ("waits", saga.waits),
        ("asked", saga.asked),
        ("error", saga.error),
        ("cause", saga.cause if saga.cause != saga.error else None),
        ("pivot", saga.pivot),
        ("arguments", None if found.args is None else encode(found.args)),
        ("result", saga.result),
        ("started", told(saga.started_at, now)),
        ("deadline", told(saga.deadline, now)),
        ("decided", told(saga.decided_at, now)),
        ("finished", told(saga.finished_at, now)),
        ("job", saga.job_id),
        ("parent", saga.parent),
        ("correlation", saga.correlation_id),
    ]


async def show_history(hf: Holdfast, options: Namespace) -> int:
    found = await history(hf.store, options.id)
    if found is None:
        return _no_such_saga(options.id)
    if options.json:
        document(found.as_json())
    else:
        _show_timeline(found, await hf.store.now())
    return DONE


def _show_timeline(found: History, now: float) -> None:
    show_table(_TIMELINE, [_as_entry(entry, now) for entry in found.timeline], nothing="")


def _as_entry(entry: Entry, now: float) -> list[object]:
    told = None if entry.told is None else shortened(clean(entry.told), _TOLD_SHOWN)
    return [cell(entry.at, now), entry.what, entry.name, told]


def _say_what_is_next(found: History) -> None:
    saga_id = shlex.quote(found.saga.id)
    open_ = to_decide(
        [(each.name, each.progress, each.result) for each in found.steps],
        no_way_back=found.saga.pivot is not None and not found.saga.undoing,
    )
    say()
    say("When its cause is mended, let it go on from where it stands:")
    say(f"  holdfast sagas retry {saga_id}")
    if open_:
        say("Or look on the other side whether it was done, and say what you found:")
    for name in open_:
        say(f"  holdfast sagas settle {saga_id} {shlex.quote(name)} --done --result JSON")
        say(f"  holdfast sagas settle {saga_id} {shlex.quote(name)} --not-done")
    if not found.saga.undoing and found.saga.pivot is None:
        say("Or have it undone:")
        say(f"  holdfast sagas cancel {saga_id}")


def _no_such_saga(wanted: str) -> int:
    complain(f"There is no saga {wanted}: it was never started here, or it is over and was pruned.")
    return NOT_AS_WISHED


# --- deciding ---


async def cancel(hf: Holdfast, options: Namespace) -> int:
    answer = await hf.sagas.cancel(
        options.id, actor=actor(options), reason=options.reason, done_too=options.done_too
    )
    return _end(answer, options, f"{options.id} will be undone.")


async def retry(hf: Holdfast, options: Namespace) -> int:
    answer = await hf.sagas.retry(options.id, actor=actor(options))
    return _end(answer, options, f"{options.id} goes on: it is {answer.state}.")


async def retry_undo(hf: Holdfast, options: Namespace) -> int:
    record = await hf.sagas.get(options.id)
    if record is not None and not record.undoing:
        complain(f"Saga {options.id} is not being undone. `holdfast sagas retry` lets it go on.")
        return NOT_AS_WISHED
    return await retry(hf, options)


def _check_signal(options: Namespace) -> None:
    try:
        options.value = encode(decode(options.value, limit=RESULT_LIMIT))
    except PayloadError as error:
        raise UsageError(f"--value: {error} A text has quotation marks: --value '\"a text\"'.") from None


async def signal(hf: Holdfast, options: Namespace) -> int:
    answer = await hf.store.sagas.signal(options.id, options.name, options.value)
    return _end(answer, options, f"{options.id} has the signal {options.name!r}.")


def _check_settle(options: Namespace) -> None:
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


async def settle(hf: Holdfast, options: Namespace) -> int:
    answer = await hf.sagas.settle(
        options.id, options.step, done=options.done, result=options.result, actor=actor(options)
    )
    return _end(answer, options, f"{options.id} goes on: it is {answer.state}.")


def _end(answer: SagaAnswer, options: Namespace, accepted: str) -> int:
    is_done = answer.outcome == "accepted"
    if options.json:
        document(
            {
                "id": answer.id,
                "outcome": answer.outcome,
                "state": answer.state,
                "to_decide": list(answer.steps),
            }
        )
    elif is_done:
        say(accepted)
    else:
        _complain(answer, options)
    return DONE if is_done else NOT_AS_WISHED


def _complain(answer: SagaAnswer, options: Namespace) -> None:
    match answer.outcome:
        case "missing":
            _no_such_saga(answer.id)
        case "over":
            complain(f"Saga {answer.id} is {answer.state} already.")
        case "undoing":
            complain(f"Saga {answer.id} is being undone already: it is {answer.state}.")
        case "too_late":
            complain(f"Saga {answer.id} has passed its pivot: there is no way back.")
        case "not_stuck":
            complain(f"Saga {answer.id} is {answer.state}, and goes on by itself.")
        case "ending":
            complain(f"Saga {answer.id} is {answer.state}, and its job ends just now. Ask again in a moment.")
        case "no_such_step":
            names = ", ".join(map(repr, answer.steps)) or "none"
            complain(f"Saga {answer.id} has no open step {options.step!r}. To be decided: {names}.")
        case _:
            complain(
                f"Saga {answer.id} is {answer.state}, and its job is gone: nothing can carry it any more."
            )
