"""What people and workers ask for is done, and they are told the truth of it: pause, cancel, later, hold, keep, epoch."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import IN_TRANSACTION, Run
from holdfast.testing.simulation.history import BY_LOOK, Call
from holdfast.testing.simulation.ledger import Entry, Made
from holdfast.testing.simulation.plan import KEEP

_SAME = 1e-3


def paused(run: Run) -> Iterator[str]:
    """Nothing is claimed from a queue that is paused."""
    stopped: set[str] = set()
    for entry in run.ledger.entries:
        if entry.what == "queue_paused":
            stopped.add(entry.id)
        elif entry.what == "queue_resumed":
            stopped.discard(entry.id)
        elif entry.claimed and run.ledger.made[entry.id].queue in stopped:
            yield f"job {entry.id}: claimed at {entry.moment:.3f} s from a queue that is paused"


def tenant_paused(run: Run) -> Iterator[str]:
    """Nothing of a tenant that is paused is claimed."""
    stopped: set[str | None] = set()
    for entry in run.ledger.entries:
        if entry.what == "tenant_paused":
            stopped.add(entry.id)
        elif entry.what == "tenant_resumed":
            stopped.discard(entry.id)
        elif entry.claimed and run.ledger.made[entry.id].tenant in stopped:
            yield f"job {entry.id}: claimed at {entry.moment:.3f} s although its tenant is paused"


def cancelled(run: Run) -> Iterator[str]:
    """The answer of cancel is what became of the job; one that was asked to stop is never put back."""
    for call in run.history.of("cancel"):
        if call.kind == "ok" and not _is_so(run, call):
            yield f"job {call.asked}: {call.process} was told {call.answer} by cancel; that is not what is stored"
    for job_id, entries in run.ledger.by_job.items():
        asked = None
        for entry in entries:
            if entry.was_state == "running" and entry.state == "queued" and asked is not None:
                yield f"job {job_id}: put back at {entry.moment:.3f} s although it was asked to stop ({asked})"
            asked = entry.reason if entry.state == "running" else None


def _is_so(run: Run, call: Call) -> bool:
    assert call.answered is not None
    entries = [entry for entry in run.ledger.by_job[call.asked] if entry.step <= call.answered.step]
    if call.answer is None:
        return any(entry.what == "pruned" for entry in entries)
    if call.answer == "running":
        return any(entry.state == "running" and entry.reason and call.spans(entry) for entry in entries)
    return any(entry.what == "over" and entry.state == call.answer for entry in entries)


def later(run: Run) -> Iterator[str]:
    """Retry and snooze come back after as long as they said, and not before."""
    asked = {
        (job_id, token): after
        for call in run.history.of("finish")
        for job_id, token, outcome, after in call.asked
        if outcome in ("Retry", "Snooze")
    }
    released = _released(run)
    for entry in run.ledger.of("moved"):
        if entry.was_state != "running" or entry.state != "queued" or entry.held == "guard":
            continue
        after = asked.get((entry.id, entry.token or 0), 0.0)
        if _in_transaction(run, entry) or (entry.id, entry.token) in released:
            continue
        if abs((entry.run_at or 0.0) - entry.at - after) > _SAME:
            yield f"job {entry.id}: put off for {after} s, stored as {(entry.run_at or 0.0) - entry.at:.3f} s"
        if after > 0 and entry.held != "time":
            yield f"job {entry.id}: put off for {after} s, and it is held for {entry.held}"


def _released(run: Run) -> set[tuple[str, int]]:
    """A real worker that leaves, and cannot write an outcome in time, puts the job back instead; and a saga rests."""
    if not run.plan.is_real:
        return set()
    return {claim for call in run.history.of("release", "rest") for claim in call.asked}


def _in_transaction(run: Run, entry: Entry) -> bool:
    """A rescue in a transaction reads the clock when that begins: until it writes, time may pass, or the clock be moved."""
    spent = entry.at - (entry.run_at or 0.0)
    if not run.plan.is_real or not any(
        call.spans(entry) for call in run.history.of("rescue", "rescue_worker")
    ):
        return False
    return 0 <= spent < IN_TRANSACTION or run.stepped_under(entry)


_BECOMES = {
    "Done": {"succeeded"},
    "effect": {"succeeded"},
    "Cancel": {"cancelled"},
    "Dead": {"dead"},
    "Unknown": {"unknown"},
    "Retry": {"queued", "cancelled"},  # cancelled when it was asked to stop
    "Snooze": {"queued", "cancelled"},
}


def outcomes(run: Run) -> Iterator[str]:
    """A job becomes what its holder said. Of effects the store knows more: then it is unknown (see steps)."""
    told: dict[tuple[str, int], set[str]] = {}
    for call in run.history.of("finish"):
        for job_id, token, outcome, _ in call.asked:
            told.setdefault((job_id, token), set()).update(_BECOMES[outcome])
    for claim in _released(run):
        told.setdefault(claim, set()).update({"queued", "cancelled"})
    for entry in run.ledger.entries:
        expected = told.get((entry.id, entry.token or 0))
        if expected is not None and _is_in_doubt(entry):
            expected = expected | {"unknown"} if expected & {"succeeded", "dead"} else expected
        if entry.ended and expected is not None and entry.state not in expected:
            yield f"job {entry.id}: {entry.state} at {entry.moment:.3f} s; its holder said {sorted(expected)}"


def _is_in_doubt(entry: Entry) -> bool:
    return entry.state == "unknown" and "and nobody knows whether effect" in (entry.reason or "")


def held_by_hand(run: Run) -> Iterator[str]:
    """What is held for a guard stays held until someone lets go of it."""
    unholds, opened = run.history.of("unhold"), run.history.of("open_gates")
    for entry in run.ledger.of("moved"):
        if entry.was_held == "guard" != entry.held and not entry.left_to_person:
            made = run.ledger.made[entry.id]
            is_let_go = any(call.spans(entry) and _fits(made, *call.asked) for call in unholds)
            if not is_let_go and not any(call.spans(entry) and made.guard in call.asked for call in opened):
                yield f"job {entry.id}: no longer held at {entry.moment:.3f} s, and nobody let go of it"


def _fits(made: Made, queue: str | None, guard: str | None) -> bool:
    return queue in (None, made.queue) and guard in (None, made.guard)


def kept(run: Run) -> Iterator[str]:
    """What is over is kept for as long as was said, from the time that its transaction read when it began."""
    over = {entry.id: entry.run_at or 0.0 for entry in run.ledger.of("over")}
    revived = run.history.of("cancel a saga")  # that was done: its job lives again
    for entry in run.ledger.of("pruned"):
        if any(call.spans(entry) for call in revived):
            continue
        if entry.at - over[entry.id] < KEEP - _SAME:
            yield f"job {entry.id}: forgotten {entry.at - over[entry.id]:.3f} s after it was over, not {KEEP} s"


def decided(run: Run) -> Iterator[str]:
    """What is dead, or of unknown outcome, does not run again by itself; a person's decision is written down."""
    resolves = run.history.of("resolve", BY_LOOK)
    audited = {
        (entry.id, entry.step) for entry in run.ledger.of("audit") if entry.reason == "unknown.resolve"
    }
    replays = run.history.of("replay")
    for entry in run.ledger.of("moved"):
        if entry.was_state == "dead" and any(
            call.asked == entry.id and call.spans(entry) for call in replays
        ):
            continue
        if entry.was_state == "unknown" and (entry.id, entry.step) in audited:
            if not any(call.spans(entry) for call in resolves):
                yield f"job {entry.id}: someone is said to have decided about it at {entry.moment:.3f} s, and nobody has"
        elif entry.was_state in ("dead", "unknown"):
            yield f"job {entry.id}: from {entry.was_state} to {entry.state} at {entry.moment:.3f} s, without a decision"


def epochs(run: Run) -> Iterator[str]:
    """Every token that is drawn after the epoch was raised is of it, or of a later one."""
    raised = [call for call in run.history.of("raise_epoch") if call.kind == "ok"]
    for entry in run.ledger.entries:
        if not (entry.claimed or entry.rescued):
            continue
        for call in raised:
            assert call.answered is not None
            if entry.step > call.answered.step and (entry.token or 0) >> 40 < call.answer:
                yield f"job {entry.id}: got token {entry.token} after the epoch was raised to {call.answer}"
