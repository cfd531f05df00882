"""Counters of what fleets of real workers went through."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.faults import BODY_POINTS
from holdfast.testing.simulation.history import Event
from holdfast.testing.simulation.service import sometimes_in_bodies as bodies

SEEN = [
    "drained while jobs ran",
    "left after its share",
    "process ended because a run was stuck",
    "supervisor's rescue",
    "rescued from a live worker whose lease had ended",
    "lease lost while its body ran",
    "late finish refused",
    "timed out",
    "lock was held by another",
    "lock stolen while its body ran",
    "held for a task that is not known",
    "failed after its completion",
    "on_dead has written for a failure",
    "on_dead has written for a rescue",
    "on_dead has failed",
    "tick made late",
    "tick made up for by policy all",
    "missed ticks passed over",
    *(f"crash {point}" for point in BODY_POINTS),
    *bodies.SEEN,
]


def seen(run: Run) -> Iterator[str]:
    yield from _in_events(run)
    yield from _in_ledger(run)
    yield from _in_schedules(run)
    yield from bodies.seen(run)
    for call in run.history.of("acquire"):
        if call.kind == "ok" and call.answer is None and not call.asked[0].startswith("holdfast:"):
            yield "lock was held by another"


_EVENTS = {"has done its share": "left after its share", "stuck": "process ended because a run was stuck"}
_NOTES = {
    "job.finish_refused": "late finish refused",
    "job.unknown_task": "held for a task that is not known",
    "job.failed_after_completion": "failed after its completion",
    "on_dead.failed": "on_dead has failed",
}


def _in_events(run: Run) -> Iterator[str]:
    running: dict[str, set[tuple[str, int]]] = defaultdict(set)
    lost = {entry.id for entry in run.ledger.entries if entry.rescued}
    for event in run.history.events:
        if event.verb in _EVENTS:
            yield _EVENTS[event.verb]
        match event.verb:
            case "body":
                running[event.process].add(event.data[:2])
            case "body over":
                running[event.process].discard(event.data)
            case "draining" if running[event.data]:
                yield "drained while jobs ran"
            case "note":
                yield from _in_note(event, lost)


def _in_note(event: Event, lost: set[str]) -> Iterator[str]:
    name, job_id = event.data
    if name in _NOTES:
        yield _NOTES[name]
    if name == "job.lease_lost" and job_id in lost:
        yield "lease lost while its body ran"


def _in_ledger(run: Run) -> Iterator[str]:
    killed = {event.data: event.step for event in run.history.happened("killed")}
    dead = {entry.id: entry for entry in run.ledger.of("moved") if entry.state == "dead"}
    for entry in run.ledger.entries:
        if entry.rescued and entry.process.startswith("supervisor"):
            yield "supervisor's rescue"
        if entry.rescued and killed.get(entry.was_owner or "", entry.step) >= entry.step:
            yield "rescued from a live worker whose lease had ended"
        if entry.what == "moved" and entry.state == "dead" and "TimeoutError" in (entry.reason or ""):
            yield "timed out"
        if entry.what == "row" and entry.reason == "on_dead" and entry.id in dead:
            by_rescue = (dead[entry.id].reason or "").startswith("its worker died")
            yield f"on_dead has written for a {'rescue' if by_rescue else 'failure'}"
        if entry.what == "lease_gone" and any(
            call.asked == entry.id and call.spans(entry) for call in run.history.of("steal")
        ):
            yield "lock stolen while its body ran"


def _in_schedules(run: Run) -> Iterator[str]:
    for each in run.plan.schedules:
        made = [entry for entry in run.ledger.of("tick") if entry.reason == each.name]
        late = [entry for entry in made[1:] if entry.at - (entry.run_at or 0.0) > 60]
        if late:
            yield "tick made late"
        if len(late) > 1 and each.missed == "all":
            yield "tick made up for by policy all"
        if run.plan.downtime and each.missed != "all" and made:
            yield "missed ticks passed over"
