"""Counters of what fleets with sagas went through."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.checkers.saga_told import (
    KNOWN,
    STUCK,
    UNDO_STEP,
    WAIT_STEP,
    Saga,
    Told,
    read,
    told,
)
from holdfast.testing.simulation.ledger import Fact
from holdfast.testing.simulation.sagas.calling import IN_TRANSACTION
from holdfast.testing.simulation.sagas.faults import POINTS
from holdfast.testing.simulation.sagas.provider import CALL
from holdfast.testing.simulation.sagas.recorded import CANCEL, PRUNE, RETRY, SETTLE, START

SEEN = [
    "process killed",
    "process paused",
    "clock jumped",
    "database's clock stepped",
    "drained",
    "done",
    "undone",
    "needs_operator",
    "over after a person's decision",
    "start of one that is there",
    "start rolled back",
    "cancelled and undone",
    "cancelled too late",
    "ran out of time",
    "pivot passed",
    "failed after its pivot",
    "failure caught",
    "step failed and succeeded later",
    "step called again by another process",
    "unknown step found by a lookup",
    "unknown step settled after a lookup in vain",
    "unknown step settled by a person",
    "undo retried",
    "undo retried by another process",
    "undo failed for good",
    "undo settled by a person",
    "let go on by a person",
    "woken by an event",
    "event that came before its wait",
    "woken by a signal",
    "signal that came before its wait",
    "wait timed out",
    "slept",
    "child done",
    "child undone by itself",
    "child undone because of its parent",
    "done child undone",
    "child that could not be undone",
    "waits side by side",
    "sagas pruned",
    "rest refused",
    *(f"crash {point}" for point in POINTS),
    *(f"stall {point}" for point in ("effect.begun", "undo.begun", "saga.resting")),
]


def seen(run: Run) -> Iterator[str]:
    story = told(run)
    yield from _in_history(run)
    for saga in story.sagas.values():
        yield from _in_rows(saga)
        yield from _in_steps(saga)
        yield from _in_waits(story, saga)
        if saga.parent is not None:
            yield from _in_child(saga)


def _in_history(run: Run) -> Iterator[str]:
    for call in run.history.of(START):
        if call.kind == "ok" and not call.answer[0].created:
            yield "start of one that is there"
    for call in run.history.of(IN_TRANSACTION):
        if str(call.answer).startswith("Rollback"):
            yield "start rolled back"
    for call in run.history.of(PRUNE):
        if call.kind == "ok" and call.answer:
            yield "sagas pruned"
    for call in run.history.of("rest"):
        if call.kind == "ok" and call.answer is None:
            yield "rest refused"
    for call in run.history.of(CANCEL, RETRY, SETTLE):
        if call.kind != "ok":
            continue
        outcome = call.answer.outcome
        if call.verb == CANCEL and outcome == "too_late" and not call.asked[1].startswith("saga:"):
            yield "cancelled too late"
        if call.verb == RETRY and outcome == "accepted":
            yield "let go on by a person"
        if call.verb == SETTLE and outcome == "accepted":
            undo = call.asked[1].startswith(UNDO_STEP)
            yield "undo settled by a person" if undo else "unknown step settled by a person"


def _in_rows(saga: Saga) -> Iterator[str]:
    was_stuck = False
    for row in saga.became("done", "undone", *STUCK):
        yield row["state"]
        if row["state"] in STUCK:
            was_stuck = True
            yield from ("failed after its pivot",) if row["pivot"] is not None else ()
        elif was_stuck:
            yield "over after a person's decision"
        if row["state"] == "undone":
            yield from ("cancelled and undone",) if row["asked"] else ()
            yield from ("ran out of time",) if "ran out of time" in (row["error"] or "") else ()
        if row["state"] == "done" and row["pivot"] is not None:
            yield "pivot passed"


def _in_steps(saga: Saga) -> Iterator[str]:
    callers: dict[str, str] = {}
    for event in saga.asked:
        if event.verb == CALL and callers.setdefault(event.data[1], event.process) != event.process:
            yield "step called again by another process"
    for name, entries in saga.steps.items():
        if name.startswith(UNDO_STEP):
            if any(each.tries for each in entries) and entries[-1].progress in KNOWN:
                yield "undo retried"
            if len({each.process for each in entries if each.progress == "begun"}) > 1:
                yield "undo retried by another process"
            if WAIT_STEP in name and any(each.progress == "failed" for each in entries):
                yield "child that could not be undone"
            elif any(each.progress == "failed" for each in entries):
                yield "undo failed for good"
        elif not name.startswith(WAIT_STEP):
            yield from _in_step(saga, name)


def _in_step(saga: Saga, name: str) -> Iterator[str]:
    entries = saga.steps[name]
    progress = [each.progress for each in entries]
    if "handled" in progress:
        yield "failure caught"
    if any(each.tries for each in entries) and progress[-1] in KNOWN:
        yield "step failed and succeeded later"
    for before, after in itertools.pairwise(entries):
        if before.progress == "sought" and after.progress == "failed":
            yield "unknown step settled after a lookup in vain"
        calls = [each for each in saga.asked if each.verb == CALL and each.data[1] == name]
        began = any(before.step <= each.step <= after.step for each in calls if each.process == after.process)
        if before.progress in ("begun", "sought", "unknown") and after.progress == "done" and not began:
            yield "unknown step found by a lookup"


def _in_waits(story: Told, saga: Saga) -> Iterator[str]:
    registered = {
        fact["step"]: fact
        for fact in story.run.ledger.facts["saga_wait"]
        if fact.change == "INSERT" and story.by_number[fact["saga"]] is saga
    }
    for name, entries in saga.steps.items():
        if not name.startswith(WAIT_STEP) or entries[-1].progress not in KNOWN:
            continue
        if name.startswith(f"{WAIT_STEP}gather"):
            yield "waits side by side"
        if "sleep/" in name:
            yield "slept"
        elif read(entries[-1].result).get("timed_out"):
            yield "wait timed out"
        else:
            yield from _came(name, registered.get(name))


def _came(name: str, wait: Fact | None) -> Iterator[str]:
    for kind, article in (("event", "an"), ("signal", "a")):
        if f"{kind}/" in name:
            yield f"{kind} that came before its wait" if wait is None else f"woken by {article} {kind}"


def _in_child(child: Saga) -> Iterator[str]:
    states = [row["state"] for row in child.became("done", "undone")]
    if "done" in states:
        yield "child done"
    if states == ["done", "undone"]:
        yield "done child undone"
    if states == ["undone"]:
        yield "child undone because of its parent" if child.rows[-1]["asked"] else "child undone by itself"
