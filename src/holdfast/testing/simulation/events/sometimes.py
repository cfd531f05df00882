"""Counters of what fleets with events went through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.checkers.told import Told, stream_of, told
from holdfast.testing.simulation.events.caching import INVALIDATE, LOAD, READ
from holdfast.testing.simulation.events.emitting import EMITS
from holdfast.testing.simulation.events.faults import POINTS
from holdfast.testing.simulation.events.viewing import ASKED
from holdfast.testing.simulation.history import Call

RELAY = "holdfast:relay"
SEEN = [
    "process killed",
    "process paused",
    "clock jumped",
    "database's clock stepped",
    "drained",
    "unknown emit that happened",
    "unknown emit that did not",
    "unknown transaction with events that happened",
    "unknown transaction with events that did not",
    "transaction with events rolled back",
    "several events in one transaction",
    "version as expected",
    "version conflict",
    "relay's lease taken over",
    "relay's lease taken over after its end",
    "zombie relay refused",
    "zombie consumer refused",
    "published again",
    "redelivered by the broker",
    "duplicate dropped by the inbox",
    "broker was down",
    "broker was frozen",
    "acknowledgement lost",
    "tail lost",
    "re-driven",
    "re-driven event that a group had not",
    "quarantined because it was refused",
    "quarantined after its tries",
    "waited behind one in quarantine",
    "dropped by a person",
    "requeued by a person",
    "stray kept",
    "handler failed and succeeded later",
    "dead letter of a group",
    "dead letter replayed",
    "events pruned",
    "event set aside for a view",
    "event taken by a view after all",
    "handled while another waited for its key",
    "event emitted by a handler",
    "group of a newer program",
    "row of a view read by who wrote it",
    "view was behind",
    "view built anew",
    "projector taken over",
    "zombie projector refused",
    "fresh value served",
    "stale value served",
    "value of another process served",
    "load shared by several",
    "load failed",
    "value invalidated while it was loaded",
    "invalidation put off",
    *(f"crash {point}" for point in POINTS),
]
_WEATHER = {"down": "broker was down", "frozen": "broker was frozen"}
_EVENTS = {"tail lost": "tail lost", "ack lost": "acknowledgement lost", "re-driven": "re-driven"}


def seen(run: Run) -> Iterator[str]:
    story = told(run)
    yield from _in_events(run, story)
    yield from _in_calls(run, story)
    yield from _in_leases(run)
    yield from _in_outbox(story)
    yield from _in_groups(story)
    yield from _in_views(run)
    yield from _in_caches(run)


def _in_events(run: Run, story: Told) -> Iterator[str]:
    published: set[str] = set()
    for event in run.history.events:
        if event.kind != "event":
            continue
        if event.verb in _EVENTS:
            yield _EVENTS[event.verb]
        match event.verb:
            case "weather" if event.data in _WEATHER:
                yield _WEATHER[event.data]
            case "published":
                if event.data[0] in published:
                    yield "published again"
                published.add(event.data[0])
            case "given" if event.data[3]:
                yield "redelivered by the broker"
            case "dropped" | "requeued":
                yield f"{event.verb} by a person"
    for event in run.history.happened("tail lost"):
        for event_id in event.data:
            if any(
                (group.name, event_id) in story.delivered
                and story.delivered[group.name, event_id].step > event.step
                for group in story.stream.groups
            ):
                yield "re-driven event that a group had not"


def _in_calls(run: Run, story: Told) -> Iterator[str]:
    stored = {(data.op, data.place, data.go) for data in story.data.values() if not data.cause}
    for call in run.history.of(*EMITS):
        op, places, go = call.asked[:3]
        if call.kind == "unknown" and call.answered is not None:
            what = "transaction with events" if call.verb == "emit in transaction" else "emit"
            yield f"unknown {what} that {'happened' if (op, places[0], go) in stored else 'did not'}"
        elif str(call.answer).startswith("Rollback"):
            yield "transaction with events rolled back"
        elif str(call.answer).startswith("VersionConflict"):
            yield "version conflict"
        elif call.kind == "ok" and call.verb == "emit expecting":
            yield "version as expected"
        elif call.kind == "ok" and len(places) > 1:
            yield "several events in one transaction"
    for call in run.history.of("replay", "prune outbox"):
        if call.kind == "ok" and call.answer:
            yield "dead letter replayed" if call.verb == "replay" else "events pruned"
    for call in run.history.of("stamp", "deliver"):
        if call.kind == "ok" and call.answer is None:
            yield f"zombie {'relay' if call.verb == 'stamp' else 'consumer'} refused"
        elif call.kind == "ok" and call.verb == "deliver" and not all(call.answer):
            yield "duplicate dropped by the inbox"


def _in_leases(run: Run) -> Iterator[str]:
    holder = None
    for entry in run.ledger.of("lease", "lease_gone"):
        if entry.id != RELAY:
            continue
        if entry.what == "lease_gone":
            holder = None
            continue
        if holder is not None and holder.owner != entry.owner:
            yield "relay's lease taken over after its end"
        yield from ("relay's lease taken over",) if holder is not None and holder.owner != entry.owner else ()
        holder = entry


def _in_outbox(story: Told) -> Iterator[str]:
    quarantined: dict[str, int] = {}
    for fact in story.run.ledger.facts["outbox"]:
        if fact["state"] == "quarantined" and fact.change == "UPDATE":
            yield "quarantined after its tries" if fact["tries"] > 1 else "quarantined because it was refused"
            if fact["key"] is not None:
                quarantined[fact["key"]] = fact["version"]
        elif fact.change == "INSERT" and quarantined.get(fact["key"], fact["version"] or 0) < (
            fact["version"] or 0
        ):
            yield "waited behind one in quarantine"


def _in_groups(story: Told) -> Iterator[str]:
    yield from ("stray kept" for fact in story.run.ledger.facts["stray"] if fact.change == "INSERT")
    yield from ("event emitted by a handler" for data in story.data.values() if data.cause)
    failed = {event.data[:2] for event in story.run.history.happened("handling")}
    for pair, fact in story.delivered.items():
        if pair in story.handled and pair in failed and _runs(story, pair) > 1:
            yield "handler failed and succeeded later"
        if story.states.get(fact["job_id"]) == "dead":
            yield "dead letter of a group"
        if story.group(pair[0]).newer:
            yield "group of a newer program"
    for entry in story.run.ledger.of("moved"):
        if entry.was_held == "ordering" != entry.held:
            yield "handled while another waited for its key"


def _in_views(run: Run) -> Iterator[str]:
    for call in run.history.of(ASKED):
        if call.kind == "ok":
            yield "row of a view read by who wrote it"
        elif str(call.answer).startswith("ViewBehind"):
            yield "view was behind"
    for call in run.history.of("apply view"):
        if call.kind == "ok" and not call.answer:
            yield "zombie projector refused"
    for fact in run.ledger.facts["view_aside"]:
        if fact.change != "UPDATE":
            yield (
                "event set aside for a view" if fact.change == "INSERT" else "event taken by a view after all"
            )
    serving: dict[str, int] = {}
    movers: dict[str, str] = {}
    for fact in run.ledger.facts["view"]:
        if fact["state"] == "serving" and fact.change != "DELETE":
            if serving.setdefault(fact["view"], fact["generation"]) != fact["generation"]:
                yield "view built anew"
            serving[fact["view"]] = fact["generation"]
            if movers.setdefault(fact["view"], fact.process) != fact.process:
                yield "projector taken over"
            movers[fact["view"]] = fact.process


def _in_caches(run: Run) -> Iterator[str]:
    spec = stream_of(run).cache
    if spec is None:
        return
    loads = {call.asked[1]: call for call in run.history.of(LOAD)}
    yield from ("load failed" for call in loads.values() if str(call.answer).startswith("LoadFailed"))
    waiting: Counter[tuple[str, int]] = Counter()
    for read in run.history.of(READ):
        if read.kind != "ok":
            continue
        load = loads[read.answer.load]
        assert load.answered is not None
        age = read.invoked.moment - load.answered.moment
        if load.process != read.process:
            yield "value of another process served"
        if age > 0:
            yield "stale value served" if age > spec.fresh * 1.1 else "fresh value served"
        else:
            waiting[read.process, read.answer.load] += 1
    yield from ("load shared by several" for number in waiting.values() if number > 1)
    for call in run.history.of(INVALIDATE):
        if call.kind == "ok" and not call.answer:
            yield "invalidation put off"
        if any(load.asked[0] == call.asked[0] and _during(call, load) for load in loads.values()):
            yield "value invalidated while it was loaded"


def _during(call: Call, load: Call) -> bool:
    end = load.answered
    return load.invoked.step < call.invoked.step and end is not None and call.invoked.step < end.step


def _runs(story: Told, pair: tuple[str, str]) -> int:
    return sum(event.data[:2] == pair for event in story.run.history.happened("handling"))
