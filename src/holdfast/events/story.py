"""The whole story of a correlation id: what was asked, the jobs and events that followed, as a tree by their causes."""

from __future__ import annotations

from collections import deque

import msgspec

from holdfast.store.event_records import OutboxEvent
from holdfast.store.ports import Store
from holdfast.store.records import JobRecord, check_id

MOST = 1_000  # jobs, and as many events, of one story
DEEPEST = 50  # levels that are shown beneath each other


class Node(msgspec.Struct):
    """A job or an event, and what it caused, in order."""

    what: JobRecord | OutboxEvent
    caused: list[Node] = []
    is_moved: bool = (
        False  # it stands at the beginning because it would be too deep: its cause is told by its id
    )

    @property
    def at(self) -> float:
        return self.what.time if isinstance(self.what, OutboxEvent) else self.what.enqueued_at


class Story(msgspec.Struct):
    correlation_id: str
    begins: list[Node]  # what nothing that is still kept has caused; and what is moved
    is_cut: bool  # there is more than MOST


async def tell(store: Store, wanted: str) -> Story | None:
    """By a correlation id, or the id of any job or event of it. None: nobody knows it."""
    job, event = await _named(store, wanted)
    story_of = wanted
    if event is not None:
        story_of = event.correlation_id or event.id
    elif job is not None:
        story_of = job.correlation_id or job.id  # as its run tells those that it causes
    jobs = await store.jobs.find(correlation_id=story_of, limit=MOST)
    events = await store.outbox.find(correlation_id=story_of, limit=MOST)
    is_cut = len(jobs) == MOST or len(events) == MOST
    first = job if job is not None and job.id == story_of else (await _named(store, story_of))[0]
    found: list[JobRecord | OutboxEvent] = [*jobs, *events]
    if first is not None and all(each.id != first.id for each in found):
        found.append(first)
    if not found:
        return None
    return Story(story_of, _tree(found), is_cut)


async def _named(store: Store, wanted: str) -> tuple[JobRecord | None, OutboxEvent | None]:
    try:
        check_id(wanted)
    except ValueError:  # an id of a request, such as a web server makes them
        return None, None
    return await store.jobs.get(wanted), await store.outbox.get(wanted)


def _tree(found: list[JobRecord | OutboxEvent]) -> list[Node]:
    nodes = {each.id: Node(each, []) for each in found}
    begins: list[Node] = []
    for node in sorted(nodes.values(), key=lambda node: node.at):
        cause = nodes.get(node.what.causation_id or "")
        (begins if cause is None or cause is node else cause.caused).append(node)
    return _flattened(begins)


def _flattened(begins: list[Node]) -> list[Node]:
    """Events that cause each other in a long row would go deeper than anybody can read, or a parser of JSON can follow."""
    found, waiting = list(begins), deque((node, 1) for node in begins)
    while waiting:
        node, level = waiting.popleft()
        if level < DEEPEST:
            waiting.extend((each, level + 1) for each in node.caused)
            continue
        moved, node.caused = node.caused, []
        for each in moved:
            each.is_moved = True
            found.append(each)
            waiting.append((each, 1))
    return found
