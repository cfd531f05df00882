"""I13, I36: all work ends, what is ready starts, nothing grows without bound, and nothing unannounced happens."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.ledger import Made

READY_BOUND = 75.0  # seconds after the heal within which a ready job must start
MAILBOX_BOUND = 100
FILE_BOUND = 16 * 2**20
WAITING_BOUND = 4  # max_waiting of the bounded task
HEALING = (
    12.0  # seconds after the heal by which everyone is served: two transactions may still hold the write lock
)


def ends(run: Run) -> Iterator[str]:
    for job_id, state, held in run.unfinished:
        yield f"job {job_id} is still {state}{'' if held is None else f' ({held})'} {run.ended - run.healed:.0f} s after the heal"


def lets_go(run: Run) -> Iterator[str]:
    for kind, key, row in run.leaked:
        yield f"the {kind} {key!r} is still held by row {row}, which is over"


def starts_soon(run: Run) -> Iterator[str]:
    since: dict[str, float] = {}
    for entry in run.ledger.entries:
        if entry.what in ("enqueued", "moved") and entry.state == "queued" and entry.held is None:
            since.setdefault(entry.id, max(entry.moment, run.healed))
        elif entry.id in since:
            waited = entry.moment - since.pop(entry.id)
            if entry.claimed and waited > READY_BOUND:
                yield f"job {entry.id} was ready for {waited:.1f} s after the heal"


def available(run: Run) -> Iterator[str]:
    """Long after the heal nobody is told that the store cannot be reached, is full, or that nobody knows."""
    for call in run.history.calls:
        if call.answered is None or call.answered.moment < run.healed + HEALING:
            continue
        if call.kind == "unknown" or call.answer in ("StoreUnavailable", "StoreFull"):
            yield f"{call.verb} of {call.process} failed {call.answered.moment - run.healed:.1f} s after the heal"


def bounded(run: Run) -> Iterator[str]:
    if run.longest_mailbox > MAILBOX_BOUND:
        yield f"a mailbox held {run.longest_mailbox} items"
    if run.file_size > FILE_BOUND:
        yield f"the database and its log have {run.file_size} bytes"
    bound = {made.id for made in run.ledger.made.values() if _is_bounded(run, made)}
    waiting: set[str] = set()
    for entry in run.ledger.entries:
        if entry.id not in bound:
            continue
        if entry.what == "enqueued":
            waiting.add(entry.id)
            if len(waiting) > WAITING_BOUND:
                yield f"{len(waiting)} jobs of the bounded task are queued at {entry.moment:.3f} s"
        elif entry.what in ("moved", "over") and entry.state != "queued":
            waiting.discard(entry.id)  # one that comes back was let in before


def _is_bounded(run: Run, made: Made) -> bool:
    spec = run.spec(made)
    return spec is not None and spec.max_waiting is not None


def no_surprises(run: Run) -> Iterator[str]:
    yield from run.crashes
