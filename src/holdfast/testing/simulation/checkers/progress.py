"""I13, I36: all work ends, what is ready starts, nothing grows without bound, and nothing unannounced happens."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.ledger import Entry, Made

READY_BOUND = 75.0  # seconds after the heal within which a ready job must start
MAILBOX_BOUND = 100
FILE_BOUND = 16 * 2**20
WAITING_BOUND = 4  # max_waiting of the bounded task
IDLE_BOUND = 8.0  # seconds, some polls, for which a ready job may wait while a worker holds nothing
HEALING = (
    12.0  # seconds after the heal by which everyone is served: two transactions may still hold the write lock
)


def ends(run: Run) -> Iterator[str]:
    for job_id, state, held in run.unfinished:
        yield f"job {job_id} is still {state}{'' if held is None else f' ({held})'} {run.ended - run.healed:.0f} s after the heal"
    for text in run.pending:
        yield f"{text}, {run.ended - run.healed:.0f} s after the heal"


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


def nobody_idles(run: Run) -> Iterator[str]:
    """A real worker that is well and holds nothing does not leave ready work alone."""
    if run.plan.kind != "worker":
        return
    since: dict[str, float] = {}
    for entry in run.ledger.entries:
        if (
            entry.what in ("enqueued", "moved")
            and entry.state == "queued"
            and entry.held is None
            and not entry.suspect
        ):
            since.setdefault(entry.id, entry.moment)
        elif entry.id in since:
            begin = since.pop(entry.id)
            if entry.claimed and entry.moment - begin > IDLE_BOUND and not _was_paused(run, entry, begin):
                for process in _idle(run, begin, entry.moment):
                    yield f"job {entry.id} was ready for {entry.moment - begin:.1f} s, and {process} had nothing to do"


def _was_paused(run: Run, claimed: Entry, begin: float) -> bool:
    queue = run.ledger.made[claimed.id].queue
    paused = [entry for entry in run.ledger.of("queue_paused", "queue_resumed") if entry.id == queue]
    return any(entry.moment <= claimed.moment for entry in paused) and any(
        entry.moment >= begin for entry in paused if entry.what == "queue_resumed"
    )


def _idle(run: Run, begin: float, end: float) -> Iterator[str]:
    """Processes that were well all the time and held no claim. One that has done its share takes no more."""
    busy = {
        entry.owner
        for entry in run.ledger.of("moved")
        if entry.state == "running" and begin <= entry.moment <= end
    }
    held: dict[str, str | None] = {}
    for entry in run.ledger.entries:
        if entry.moment > begin:
            break
        if entry.claimed:
            held[entry.id] = entry.owner
        elif entry.ended:
            held.pop(entry.id, None)
    busy |= set(held.values())
    limited = {f"n{place}" for place, most in enumerate(run.plan.max_tasks) if most is not None}
    for process in run.workers:
        if process not in busy and process.split(".")[0] not in limited and run.well(process, begin, end):
            yield process


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
