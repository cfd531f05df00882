"""`holdfast trace ID`: the whole story of a request, a job, an event or a saga, as a tree."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from holdfast.events.story import MOST, Node, Story, tell
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli import traced_sagas
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, add_command
from holdfast.runtime.cli.output import complain, document, say
from holdfast.runtime.cli.parser import Commands
from holdfast.runtime.cli.table import clean
from holdfast.runtime.cli.times import local, span
from holdfast.sagas.timeline import History
from holdfast.store.event_records import OutboxEvent
from holdfast.store.records import JobRecord
from holdfast.store.states import State


def add(commands: Commands) -> None:
    about = "show all that followed from a request, a job, an event or a saga, as a tree"
    tracing = add_command(commands, "trace", trace, about=about)
    tracing.add_argument("id", metavar="ID", help="a correlation id, or the id of a job, an event or a saga")


async def trace(hf: Holdfast, options: Namespace) -> int:
    wanted = options.id.strip()
    story = await tell(hf.store, wanted)
    if story is None and (known := await traced_sagas.story_of(hf.store, wanted)) is not None:
        story = await tell(hf.store, known)
    if story is None:
        complain(
            f"Nothing is known of {wanted!r}: no job, no event, no saga and no correlation id. It may be pruned after its time."
        )
        return NOT_AS_WISHED
    sagas = await traced_sagas.find(hf.store, story.begins)
    if options.json:
        document(
            {
                "correlation_id": story.correlation_id,
                "begins": [_plain(each, sagas) for each in story.begins],
                "cut": story.is_cut,
            }
        )
        return DONE
    for line in lines(story, sagas):
        say(clean(line))
    return DONE


def lines(story: Story, sagas: Mapping[str, History]) -> Iterator[str]:
    """One for each job, event and failed attempt, and for each step and undo of a saga."""
    yield f"story {story.correlation_id}"
    for place, node in enumerate(story.begins):
        yield from _lines(node, sagas, "", is_last=place == len(story.begins) - 1)
    if story.is_cut:
        yield f"… it has more than {MOST:,} jobs or events; these are the newest."


def _lines(node: Node, sagas: Mapping[str, History], before: str, *, is_last: bool) -> Iterator[str]:
    yield f"{before}{'└─ ' if is_last else '├─ '}{_told(node.what)}{_cause(node)}"
    inside = before + ("   " if is_last else "│  ")
    found = sagas.get(node.what.id)
    below = [*_failures(node.what), *(() if found is None else traced_sagas.lines(found))]
    yield from (f"{inside}{'│' if node.caused else ' '}  {text}" for text in below)
    for place, caused in enumerate(node.caused):
        yield from _lines(caused, sagas, inside, is_last=place == len(node.caused) - 1)


def _cause(node: Node) -> str:
    """By its id, where it does not stand above."""
    if not (node.is_moved or node.is_orphan):
        return ""
    where = ", which is not kept here" if node.is_orphan else ""
    return f"  caused by {node.what.causation_id}{where}"


def _told(what: JobRecord | OutboxEvent) -> str:
    return _event(what) if isinstance(what, OutboxEvent) else _job(what)


def _event(event: OutboxEvent) -> str:
    key = "" if event.key is None else f" {event.key} v{event.version}"
    state = event.state if event.error is None else f"{event.state}: {event.error}"
    return f"event {event.type}{key}, {state}, {local(event.time)}  {event.id}"


def _job(job: JobRecord) -> str:
    state = f"{job.state}" if job.held is None else f"{job.state}, held: {job.held}"
    if job.reason is not None and job.state is not State.SUCCEEDED:
        state += f": {job.reason.partition(chr(10))[0]}"
    tries = f", attempt {job.attempt}" if job.attempt > 1 else ""
    took = ""
    if job.started_at is not None and job.finished_at is not None:
        took = f", ran {span(job.finished_at - job.started_at)}"
    return f"job {job.task}, {state}{tries}{took}, {local(job.enqueued_at)}  {job.id}"


def _failures(what: JobRecord | OutboxEvent) -> Iterator[str]:
    if isinstance(what, JobRecord):
        for each in what.errors:
            yield f"attempt {each.attempt} failed, {local(each.at)}: {each.error.strip().partition(chr(10))[0] or '?'}"


def _plain(node: Node, sagas: Mapping[str, History]) -> dict[str, Any]:
    """Without arguments and data: those may hold what not everyone shall see. `jobs show` masks them."""
    what = node.what
    if isinstance(what, OutboxEvent):
        found = {"kind": "event", **msgspec.structs.asdict(what)}
        del found["data"]
    else:
        found = {
            "kind": "job",
            **{name: getattr(what, name) for name in _JOB},
            "errors": [msgspec.structs.asdict(each) for each in what.errors],
        }
        if (saga := sagas.get(what.id)) is not None:
            found["saga"] = traced_sagas.plain(saga)
    return {**found, "caused": [_plain(each, sagas) for each in node.caused]}


_JOB = (
    "id", "task", "queue", "state", "held", "attempt", "interruptions", "enqueued_at", "started_at", "finished_at",
    "reason", "correlation_id", "causation_id", "trace",
)  # fmt: skip
