"""I12, I13: who frees a turn or a slot passes it on in the same transaction, so there is nothing to repair."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run

MISSED = ("ordering", "concurrency")  # not `tenant`: a window has room after a cancel, until repair finds it


def nothing_to_repair(run: Run) -> Iterator[str]:
    """Whoever stops waiting for a key does so in the step in which another job lets go."""
    freed = {
        (entry.process, entry.step)
        for entry in run.ledger.entries
        if entry.ended or entry.what == "over" or entry.left_to_person
    }
    for entry in run.ledger.of("moved"):
        if (
            entry.was_held in MISSED
            and entry.held != entry.was_held
            and (entry.process, entry.step) not in freed
        ):
            yield (
                f"job {entry.id} was left waiting for {entry.was_held}: only a repair by {entry.process} at "
                f"{entry.moment:.3f} s found it"
            )
