"""Counters of what bodies with steps and effects went through."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import BY_LOOK
from holdfast.testing.simulation.ledger import Entry

SEEN = [
    "step given from its record",
    "effect found by a lookup",
    "effect not found after it had settled",
    "effect not found, and put off until it has settled",
    "lookup could not tell",
    "lookup failed",
    "look has found it",
    "look has found nothing",
    "look in vain",
    "keyed effect repeated",
    "key too old to be repeated",
    "handled failure raised again",
    "task kept from going on without its step",
    "accepted after its caller had died",
    "accepted after its caller had lost the job",
]


def seen(run: Run) -> Iterator[str]:
    yield from _in_events(run)
    yield from _in_lookups(run)
    yield from _in_looks(run)
    yield from _in_records(run)
    yield from _in_accepted(run)


def _in_events(run: Run) -> Iterator[str]:
    ran = {event.data[:3] for verb in ("step run", "call") for event in run.history.happened(verb)}
    for event in run.history.happened("saw"):
        if event.data[3] == "handled":
            yield "handled failure raised again"
        elif event.data[3] == "ended" and "without knowing what became" in event.data[4]:
            yield "task kept from going on without its step"
        elif event.data[3] == "got" and event.data[:3] not in ran:
            yield "step given from its record"
    for _ in run.history.happened("repeated"):
        yield "keyed effect repeated"


def _in_lookups(run: Run) -> Iterator[str]:
    snoozed = {asked[:2] for call in run.history.of("finish") for asked in call.asked if asked[2] == "Snooze"}
    for event in run.history.happened("lookup"):
        job_id, _, token, said = event.data
        match said:
            case "fails":
                yield "lookup failed"
            case "CannotTell":
                yield "lookup could not tell"
            case "Found":
                yield "effect found by a lookup"
            case "NotFound" if (job_id, token) in snoozed:
                yield "effect not found, and put off until it has settled"


def _in_looks(run: Run) -> Iterator[str]:
    for call in run.history.of(BY_LOOK):
        if call.kind == "ok" and call.answer.outcome != "not_unknown":
            yield "look has found it" if call.asked[2] else "look has found nothing"
    for call in run.history.of("looked"):
        if call.kind == "ok" and call.answer and call.asked[3]:
            yield "look in vain"


def _in_records(run: Run) -> Iterator[str]:
    begun: dict[tuple[str, str | None], Entry] = {}
    resolves = run.history.of("resolve", BY_LOOK)
    for entry in run.ledger.of("step"):
        if entry.progress == "begun":
            begun[entry.id, entry.name] = entry
        before = begun.get((entry.id, entry.name))
        by_hand = any(call.spans(entry) for call in resolves)
        if entry.progress == "failed" and before is not None and before.token != entry.token and not by_hand:
            yield "effect not found after it had settled"
        if entry.progress == "unknown" and entry.kind == "keyed":
            yield "key too old to be repeated"


def _in_accepted(run: Run) -> Iterator[str]:
    killed = {event.data: event.step for event in run.history.happened("killed")}
    callers = {event.data[:4]: event.process for event in run.history.happened("call")}
    lost = {(entry.id, entry.was_token): entry.step for entry in run.ledger.entries if entry.rescued}
    for event in run.history.happened("accepted"):
        if killed.get(callers[event.data], event.step) < event.step:
            yield "accepted after its caller had died"
        elif lost.get((event.data[0], event.data[2]), event.step) < event.step:
            yield "accepted after its caller had lost the job"
