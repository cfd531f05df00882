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
    is_moved: bool = False  # it stands at the beginning, and what caused it somewhere else
    is_orphan: bool = False  # what caused it is not in the story: it was pruned, or is another program's

    @property
    def at(self) -> float:
        return self.what.time if isinstance(self.what, OutboxEvent) else self.what.enqueued_at


class Story(msgspec.Struct):
    correlation_id: str
    begins: list[Node]  # what nothing that is still kept has caused; and what is moved
    is_cut: bool  # there is more than MOST


async def tell(store: Store, wanted: str) -> Story | None:
    """By a correlation id, or the id of any job or event of it. None: nobody knows it."""
    found = await _tell(store, wanted)
    if found is None and (job_id := await _heard(store, wanted)) is not None:
        found = await _tell(store, job_id)
    return found


async def _heard(store: Store, wanted: str) -> str | None:
    """The job by which an event was heard that is not in this outbox: it is another program's, or is pruned."""
    try:
        return await store.inbox.job_of(wanted)
    except ValueError:  # it cannot be the id of one
        return None


async def _tell(store: Store, wanted: str) -> Story | None:
    job, event = await _named(store, wanted)
    story_of = wanted
    if event is not None:
        story_of = event.correlation_id or event.id
    elif job is not None:
        story_of = job.correlation_id or job.id  # as its run tells those that it causes
    jobs = await store.jobs.find(correlation_id=story_of, limit=MOST + 1)
    events = await store.outbox.find(correlation_id=story_of, limit=MOST + 1)
    is_cut = len(jobs) > MOST or len(events) > MOST
    first = job if job is not None and job.id == story_of else (await _named(store, story_of))[0]
    found: list[JobRecord | OutboxEvent] = [*jobs[:MOST], *events[:MOST]]
    if first is not None and all(each.id != first.id for each in found):
        found.append(first)
    if not found:
        return None
    return Story(story_of, _tree(found, is_cut=is_cut), is_cut)


async def _named(store: Store, wanted: str) -> tuple[JobRecord | None, OutboxEvent | None]:
    try:
        check_id(wanted)
    except ValueError:  # an id of a request, such as a web server makes them
        return None, None
    return await store.jobs.get(wanted), await store.outbox.get(wanted)


def _tree(found: list[JobRecord | OutboxEvent], *, is_cut: bool) -> list[Node]:
    nodes = {each.id: Node(each, []) for each in found}
    begins: list[Node] = []
    in_time = sorted(nodes.values(), key=lambda node: node.at)
    for node in in_time:
        cause = nodes.get(node.what.causation_id or "")
        is_lost = cause is None and node.what.causation_id is not None
        node.is_moved, node.is_orphan = is_lost and is_cut, is_lost and not is_cut
        (begins if cause is None or cause is node else cause.caused).append(node)
    return _flattened(begins + _circles(in_time, nodes, begins))


def _circles(in_time: list[Node], nodes: dict[str, Node], begins: list[Node]) -> list[Node]:
    """What no beginning leads to, because it goes round: each circle is opened before its first."""
    opened: list[Node] = []
    told = _below(begins)
    for node in in_time:
        if node.what.id not in told:
            cause = nodes[node.what.causation_id or ""]
            cause.caused = [each for each in cause.caused if each is not node]
            node.is_moved = True
            opened.append(node)
            told |= _below([node])
    return opened


def _below(begins: list[Node]) -> set[str]:
    found, waiting = set[str](), list(begins)
    while waiting:
        node = waiting.pop()
        found.add(node.what.id)
        waiting += node.caused
    return found


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
