"""I7: looks at effects of which nobody knows: on their schedule, truthful, late enough, and never against a decision."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import BY_LOOK
from holdfast.testing.simulation.ledger import Entry
from holdfast.testing.simulation.service.acts import LOOKS

_SAME = 1e-3


def settled(run: Run) -> Iterator[str]:
    """A look may say that it was not done when nobody has known of it for so long."""
    by_look = [call for call in run.history.of(BY_LOOK) if not call.asked[2]]
    for (job_id, name), entries in _records(run).items():
        unknown: Entry | None = None  # since then; later ones count its looks
        for entry in entries:
            if entry.progress == "unknown":
                unknown = unknown or entry
                continue
            said = any(call.asked[:2] == (job_id, name) and call.spans(entry) for call in by_look)
            if unknown is not None and entry.progress == "failed" and said:
                passed = entry.at - unknown.at
                if passed < run.plan.settle - _SAME:
                    yield f"job {job_id}: a look took {name!r} for not done {passed:.3f} s after it became unknown"
            unknown = None


def in_turn(run: Run) -> Iterator[str]:
    """So often in vain as its schedule says, and no more."""
    found: Counter[tuple[str, int]] = Counter()
    for call in run.history.of("looked"):
        job_id, token, _, counted = call.asked
        found[job_id, token] += call.kind == "ok" and bool(call.answer) and counted
    for (job_id, token), number in found.items():
        if number > LOOKS - 1:
            yield f"job {job_id}: it was looked up {number + 1} times in vain with token {token}; its schedule says {LOOKS}"


def decided_once(run: Run) -> Iterator[str]:
    """What a look says of an effect counts while nobody knows of it, as far as it has asked after that began."""
    asked = defaultdict(list)  # when lookups began, by effect
    for event in run.history.happened("lookup"):
        asked[event.data[:2]].append(event)
    for call in run.history.of(BY_LOOK):
        job_id, name, _ = call.asked
        if call.kind != "ok" or call.answer.outcome == "not_unknown":
            continue
        calls = [each for each in run.history.happened("call") if each.data[:2] == (job_id, name)]
        calls = [each for each in calls if each.step < call.invoked.step]
        looked = [
            each
            for each in asked[job_id, name]
            if each.step < call.invoked.step and each.process == call.process
        ]
        if calls and (not looked or looked[-1].step < calls[-1].step):
            yield (
                f"job {job_id}: {call.process} decided about {name!r} at {call.invoked.moment:.3f} s by a look that is older "
                f"than its call at {calls[-1].moment:.3f} s"
            )


def _records(run: Run) -> dict[tuple[str, str], list[Entry]]:
    found = defaultdict(list)
    for entry in run.ledger.of("step"):
        found[entry.id, entry.name or ""].append(entry)
    return found
