"""I12, I13: what may start when; ordering keys, concurrency slots, priority."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import BY_LOOK
from holdfast.testing.simulation.ledger import Entry


def ordered(run: Run) -> Iterator[str]:
    """A job never starts before those that were enqueued before it with its key have settled.

    One that was dead comes back to another place, and then it is enough that they run one after the other.
    """
    waiting: dict[str, list[str]] = defaultdict(list)
    replayed: set[str] = set()
    running: dict[str, str] = {}
    keys = {made.id: made.ordered for made in run.ledger.made.values() if made.ordered is not None}
    for entry in run.ledger.entries:
        key = keys.get(entry.id)
        if key is None:
            continue
        if entry.what == "enqueued":
            waiting[key].append(entry.id)
        elif entry.was_state == "dead" != entry.state:
            replayed.add(entry.id)
        elif entry.claimed and running.get(key, entry.id) != entry.id:
            yield f"job {entry.id} of {key!r} started at {entry.moment:.3f} s while {running[key]} ran"
        elif entry.claimed and entry.id not in replayed and waiting[key][0] != entry.id:
            yield f"job {entry.id} of {key!r} started at {entry.moment:.3f} s before {waiting[key][0]} was over"
        elif entry.settled and entry.id in waiting[key]:
            waiting[key].remove(entry.id)
        if entry.claimed:
            running[key] = entry.id
        elif entry.state != "running" and running.get(key) == entry.id:
            del running[key]


def slots(run: Run) -> Iterator[str]:
    """Never more ready and running jobs of a concurrency key than it has slots, and no slot twice."""
    taken: dict[str | None, list[tuple[str, int | None]]] = defaultdict(list)
    for entry in run.ledger.entries:
        made = run.ledger.made.get(entry.id)
        if made is None or made.concurrency is None or made.concurrency_limit is None:
            continue
        holders = taken[made.concurrency]
        if entry.what == "slot":
            holders.append((entry.id, entry.slot))
            numbers = [slot for _, slot in holders]
            if len(numbers) > made.concurrency_limit or len(set(numbers)) < len(numbers):
                yield f"{made.concurrency!r} has the slots {numbers} taken at {entry.moment:.3f} s"
        elif entry.what == "slot_gone" and (entry.id, entry.slot) in holders:
            holders.remove((entry.id, entry.slot))
        elif entry.what in ("enqueued", "moved") and _needs_slot(entry) and entry.slot is None:
            yield f"job {entry.id} of {made.concurrency!r} is {entry.state} without a slot at {entry.moment:.3f} s"


def _needs_slot(entry: Entry) -> bool:
    return entry.state == "running" or (entry.state == "queued" and entry.held is None)


def put_back(run: Run) -> Iterator[str]:
    """A released job goes back to its old place; a retry goes behind all that were ready before it."""
    released = {claim for call in run.history.of("release") for claim in call.asked}
    finished = {asked[:2] for call in run.history.of("finish") for asked in call.asked}
    highest, running = 0, dict[str, int]()
    for entry in run.ledger.entries:
        if entry.what not in ("enqueued", "moved", "over"):
            continue
        claim, rank = (entry.id, entry.token or 0), entry.rank or 0
        if entry.was_state == "running" and entry.state == "queued" and entry.held is None:
            if claim in released and claim not in finished and rank != running.get(entry.id):
                yield f"job {entry.id}: released, and its rank went from {running.get(entry.id)} to {rank}"
            if claim in finished and claim not in released and rank <= highest:
                yield f"job {entry.id}: put back with rank {rank}, before others up to {highest}"
        if entry.state == "running":
            running[entry.id] = rank
        highest = max(highest, rank)


def windows(run: Run) -> Iterator[str]:
    """Promotion makes no more jobs of a tenant ready than its window has room; a claim fills up what it took."""
    ready: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    promotions = run.history.of("promote")
    others = [call for call in run.history.calls if call.verb in _MAKE_READY]
    for entry in run.ledger.entries:
        made = run.ledger.made.get(entry.id)
        if made is None or made.tenant is None or entry.what not in ("enqueued", "moved", "over"):
            continue
        now = ready[made.queue, made.tenant]
        if entry.state != "queued" or entry.held is not None:
            now.discard(entry.id)
            continue
        now.add(entry.id)
        by_promotion = any(call.spans(entry) for call in promotions)
        if len(now) > run.plan.window and by_promotion and not any(call.spans(entry) for call in others):
            yield f"tenant {made.tenant} has {len(now)} ready jobs at {entry.moment:.3f} s; its window is {run.plan.window}"


_MAKE_READY = frozenset({
    "claim", "claim_suspect", "finish", "release", "hold", "cancel", "rescue", "rescue_worker", "expire", "repair",
    "resolve", "give up", BY_LOOK,
})  # fmt: skip


def claimed_in_order(run: Run) -> Iterator[str]:
    """A claim takes the highest priority first, then the lowest rank."""
    ready: dict[str, tuple[int, int]] = {}  # what could be claimed
    made = run.ledger.made
    batch: list[Entry] = []
    for entry in run.ledger.entries:
        if batch and not (entry.claimed and entry.token == batch[0].token):
            yield from _passed_over(run, batch, ready)
            batch = []
        if entry.id not in made or entry.what not in ("enqueued", "moved", "over"):
            continue
        if entry.claimed and not entry.alone:
            batch.append(entry)
        if entry.state == "queued" and entry.held is None and not entry.suspect:
            ready[entry.id] = (-made[entry.id].priority, entry.rank or 0)
        else:
            ready.pop(entry.id, None)


def _passed_over(run: Run, batch: list[Entry], ready: dict[str, tuple[int, int]]) -> Iterator[str]:
    made = run.ledger.made
    worst: dict[str, tuple[int, int]] = {}
    for entry in batch:
        queue = made[entry.id].queue
        worst[queue] = max(worst.get(queue, (-1000, 0)), (-made[entry.id].priority, entry.rank or 0))
    for job_id, place in ready.items():
        queue, expires = made[job_id].queue, made[job_id].expires_at
        if queue in worst and place < worst[queue] and (expires is None or expires > batch[0].at):
            yield f"job {job_id} was passed over at {batch[0].moment:.3f} s by {batch[-1].id}"
