"""I16, I17: events exist with their transaction, are published once it has committed, and of each key in its order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.checkers.told import Told, is_of_events, told
from holdfast.testing.simulation.events.emitting import EMITS
from holdfast.testing.simulation.history import Call
from holdfast.testing.simulation.ledger import Entry, Fact

RELAY = "holdfast:relay"
PUBLISHED_BOUND = 60.0  # seconds after the heal


def with_its_transaction(run: Run) -> Iterator[str]:
    """An event is there if and only if what emitted it has committed: once, with all that was emitted with it."""
    if not is_of_events(run):
        return
    made, rows = _by_request(told(run)), _rows(run)
    for call in run.history.of(*EMITS):
        op, places, go = call.asked[:3]
        ids = [made.get((op, place, go), []) for place in places]
        for place, found in zip(places, ids, strict=True):
            if len(found) > 1:
                yield f"op {op}: event {place} of try {go} is stored {len(found)} times"
        yield from _as_told(call, ids)
        if call.verb == "emit in transaction" and len({bool(found) for found in (*ids, rows[op, go])}) > 1:
            yield f"op {op}, try {go}: {rows[op, go]} rows of it are committed, with the events {ids}"


def _as_told(call: Call, ids: list[list[str]]) -> Iterator[str]:
    op, _, go = call.asked[:3]
    stored = [event_id for found in ids for event_id in found]
    if call.kind == "ok" and sorted(stored) != sorted(each.id for each in call.answer):
        yield f"op {op}, try {go}: told {[each.id for each in call.answer]}, and {stored} are stored"
    if call.kind == "fail" and stored:
        yield f"op {op}, try {go}: told {call.answer}, and {stored} are stored"


def _by_request(story: Told) -> dict[tuple[int, int, int], list[str]]:
    found: dict[tuple[int, int, int], list[str]] = defaultdict(list)
    for event_id, data in story.data.items():
        if not data.cause:
            found[data.op, data.place, data.go].append(event_id)
    return found


def _rows(run: Run) -> Counter[tuple[int, int]]:
    return Counter(
        (entry.number or 0, int(entry.id)) for entry in run.ledger.of("row") if entry.reason == "emitted"
    )


def only_committed(run: Run) -> Iterator[str]:
    """The broker never gets an event that is not committed by then, and the log has only what the broker has."""
    if not is_of_events(run):
        return
    story = told(run)
    first: dict[str, int] = {}
    for event in run.history.happened("published"):
        event_id = event.data[0]
        first.setdefault(event_id, event.step)
        if event_id not in story.emitted:
            yield f"event {event_id} was published at {event.moment:.3f} s; it was never committed"
        elif story.emitted[event_id].step > event.step:
            yield f"event {event_id} was published at {event.moment:.3f} s, before it was committed"
    if story.stream.transport == "broker":
        for event_id, fact in story.stamped.items():
            if first.get(event_id, fact.step + 1) > fact.step:
                yield f"event {event_id} is marked as published at {fact.moment:.3f} s; the broker does not have it"


def all_published(run: Run) -> Iterator[str]:
    """By the end every committed event is published, but those in quarantine, and by policy what waits behind them."""
    if not is_of_events(run):
        return
    story = told(run)
    blocked: dict[str, int] = {}
    for fact in story.last.values():
        if fact["state"] == "quarantined" and fact["key"] is not None and fact.change != "DELETE":
            version = min(fact["version"], blocked.get(fact["key"], fact["version"]))
            blocked[fact["key"]] = version
    for event_id, fact in story.last.items():
        if fact["state"] != "waiting" or fact.change == "DELETE":
            continue
        if fact["key"] in blocked and fact["version"] > blocked[fact["key"]] and story.stream.holds_key:
            continue
        yield f"event {event_id} of {fact['key']!r} is not published {run.ended - run.healed:.0f} s after the heal"


def versions(run: Run) -> Iterator[str]:
    """Of each key 1, 2, 3 …, in the order of the commits, and as the emitter was told."""
    if not is_of_events(run):
        return
    story = told(run)
    newest: Counter[str] = Counter()
    for event_id, fact in story.emitted.items():
        if fact["key"] is None:
            continue
        newest[fact["key"]] += 1
        if fact["version"] != newest[fact["key"]]:
            yield f"event {event_id} is version {fact['version']} of {fact['key']!r}, after {newest[fact['key']] - 1}"
            newest[fact["key"]] = fact["version"]
    for call in run.history.of(*EMITS):
        for each in call.answer if call.kind == "ok" else ():
            if each.id in story.emitted and each.version != story.emitted[each.id]["version"]:
                yield f"event {each.id}: told version {each.version}; it is {story.emitted[each.id]['version']}"
            if call.verb == "emit expecting" and each.version != call.asked[3] + 1:
                yield f"event {each.id} is version {each.version}; its emitter had expected {call.asked[3]} before it"


def in_order(run: Run) -> Iterator[str]:
    """First publications of a key follow its versions: on the broker, and in the log."""
    if not is_of_events(run):
        return
    story = told(run)
    seen: set[str] = set()
    first: list[tuple[str, str, int]] = []
    for event in run.history.happened("published"):
        if event.data[0] not in seen:
            seen.add(event.data[0])
            first.append(("the broker", event.data[0], event.step))
    first += [
        ("the log", event_id, story.stamped[event_id].step)
        for event_id in sorted(story.stamped, key=lambda each: story.stamped[each]["position"])
    ]
    yield from _follows(story, first)


def _follows(story: Told, first: list[tuple[str, str, int]]) -> Iterator[str]:
    newest: Counter[tuple[str, str]] = Counter()
    for where, event_id, step in first:
        if (fact := story.emitted.get(event_id)) is None or fact["key"] is None:
            continue
        place, version = (where, fact["key"]), fact["version"]
        is_next = version == newest[place] + 1
        if not is_next and not _passed_over(story, fact["key"], newest[place] + 1, version, step):
            yield f"on {where} version {version} of {fact['key']!r} came first after {newest[place]}"
        newest[place] = max(version, newest[place])


def _passed_over(story: Told, key: str, low: int, high: int, step: int) -> bool:
    """Whether all between were given up by a person, or were in quarantine by then and, by the policy, hold up nobody."""
    between = [fact for fact in story.last.values() if fact["key"] == key and low <= fact["version"] < high]
    aside = [
        fact.change == "DELETE"
        or (not story.stream.holds_key and story.set_aside.get(fact["id"], step) < step)
        for fact in between
    ]
    return low < high and all(aside)


def positions(run: Run) -> Iterator[str]:
    """Given in serial commits: each is one more than the last, and none is taken away or given twice."""
    if not is_of_events(run):
        return
    newest, held = 0, dict[str, int]()
    for fact in run.ledger.facts["outbox"]:
        position = fact["position"]
        if position is None or fact.change == "DELETE":
            if fact.change == "UPDATE" and fact["id"] in held:
                yield f"event {fact['id']} has lost its position {held[fact['id']]}"
            continue
        if fact["id"] in held:
            if held[fact["id"]] != position:
                yield f"event {fact['id']} has the position {position}; it was {held[fact['id']]}"
            continue
        held[fact["id"]] = position
        if position != newest + 1:
            yield f"event {fact['id']} was given the position {position} after {newest}: who reads in between misses one"
        newest = max(newest, position)


def kept(run: Run) -> Iterator[str]:
    """What is pruned was read by every group and view, and is old enough; what a group has had is forgotten when it is handled."""
    if not is_of_events(run):
        return
    audited = {entry.commit for entry in run.ledger.of("audit")}
    readers: dict[tuple[str, Any], int] = {}  # what each of them still needs begins behind this
    told_of = [
        (name, fact) for name in ("group", "view", "outbox", "inbox") for fact in run.ledger.facts[name]
    ]
    for name, fact in sorted(told_of, key=lambda item: item[1].commit):
        if name == "group":
            _follow(readers, ("group", fact["name"]), fact, fact["position"])
        elif name == "view":
            needs = fact["start"] if fact["history"] else fact["position"]
            _follow(readers, ("view", (fact["view"], fact["generation"])), fact, needs)
        elif name == "outbox" and fact.change == "DELETE" and fact.commit not in audited:
            for reader, position in readers.items():
                if (fact["position"] or 0) > position:
                    yield f"event {fact['id']} at {fact['position']} was forgotten; {reader} has read up to {position}"
        elif name == "inbox" and fact.change == "DELETE" and fact["handled_at"] is None:
            yield f"{fact['group_name']} has forgotten event {fact['event_id']}, which it has not handled"


def _follow(readers: dict[tuple[str, Any], int], name: tuple[str, Any], fact: Fact, position: int) -> None:
    if fact.change == "DELETE" or fact.row.get("state") == "old":
        readers.pop(name, None)
    else:
        readers[name] = position


def marks_are_fenced(run: Run) -> Iterator[str]:
    """Only who holds the relay's lease says of an event that it is published, has failed, or is set aside."""
    if not is_of_events(run):
        return
    before: dict[str, Fact] = {}
    leases = Holders(run, RELAY)
    audited = {entry.commit for entry in run.ledger.of("audit")}
    for fact in run.ledger.facts["outbox"]:
        was, before[fact["id"]] = before.get(fact["id"]), fact
        if fact.change != "UPDATE" or was is None or not _is_mark(was, fact):
            continue
        if fact.commit not in audited and (wrong := leases.wrong(fact)) is not None:
            yield f"event {fact['id']} was marked {fact['state']} at {fact.moment:.3f} s by {fact.process}: {wrong}"


def _is_mark(was: Fact, now: Fact) -> bool:
    return any(was[column] != now[column] for column in ("state", "position", "tries", "error"))


class Holders:
    """Who held a lease when, by the ledger."""

    def __init__(self, run: Run, name: str) -> None:
        self._entries = [entry for entry in run.ledger.of("lease", "lease_gone") if entry.id == name]

    def wrong(self, fact: Fact) -> str | None:
        """Why the process that wrote this did not hold the lease; None: it did."""
        holder: Entry | None = None
        for entry in self._entries:
            if entry.commit > fact.commit:
                break
            holder = entry if entry.what == "lease" else None
        if holder is None:
            return "nobody held the lease"
        if holder.process != fact.process:
            return f"{holder.process} held the lease"
        if (holder.until or 0.0) <= fact.at:
            return f"its lease had ended {fact.at - (holder.until or 0.0):.3f} s before"
        return None
