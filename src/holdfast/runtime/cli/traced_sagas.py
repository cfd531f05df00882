"""The sagas of a story: what each has done and undone, under the job that carries it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.events.story import Node
from holdfast.runtime.cli.times import local
from holdfast.sagas.saga import PREFIX
from holdfast.sagas.timeline import Entry, History, history
from holdfast.store.ports import Store
from holdfast.store.records import JobRecord

MOST = 100  # sagas of one story that are told with their steps
_TOLD = ("step", "wait", "undo", "decided", "person")


async def find(store: Store, begins: Iterable[Node]) -> dict[str, History]:
    """By the ids of their jobs."""
    found: dict[str, History] = {}
    for job in _carriers(begins):
        record = await store.sagas.of_job(job.id)
        told = None if record is None else await history(store, record.id)
        if told is not None:
            found[job.id] = told
        if len(found) == MOST:
            break
    return found


def _carriers(nodes: Iterable[Node]) -> Iterator[JobRecord]:
    for node in nodes:
        if isinstance(node.what, JobRecord) and node.what.task.startswith(PREFIX):
            yield node.what
        yield from _carriers(node.caused)


async def story_of(store: Store, saga_id: str) -> str | None:
    """The id by which the story of this saga is found; None: there is no such saga."""
    try:
        record = await store.sagas.get(saga_id)
    except ValueError:  # it cannot be the id of one
        return None
    return None if record is None else record.correlation_id or record.job_id


def lines(found: History) -> Iterator[str]:
    """Without results and values: those may hold what not everyone shall see. `sagas show` masks them."""
    saga = found.saga
    why = saga.waits or (saga.error or "").partition("\n")[0]
    yield f"saga {saga.id}, {saga.state}{f': {why}' if why else ''}"
    for entry in _entries(found):
        name = "" if entry.name is None else f" {entry.name}"
        yield f"{entry.what}{name}: {_short(entry)}, {local(entry.at)}"


def _entries(found: History) -> list[Entry]:
    return [each for each in found.timeline if each.what in _TOLD and each.told != "begun"]


def _short(entry: Entry) -> str:
    told = entry.told or ""
    return told.partition(": ")[0] if told.startswith("done") or entry.what == "wait" else told


def plain(found: History) -> dict[str, Any]:
    """For programs; the same without results."""
    saga = found.saga
    steps = [
        {
            "name": each.name,
            "progress": each.progress,
            "tries": each.tries,
            "first_at": each.first_at,
            "at": each.at,
        }
        for each in found.steps
    ]
    return {"id": saga.id, "name": saga.name, "state": saga.state, "undoing": saga.undoing, "pivot": saga.pivot,
            "error": saga.error, "cause": saga.cause, "parent": saga.parent, "steps": steps}  # fmt: skip
