"""I4, I5, I8, I9: who may run a job, until when, and whose writes are accepted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from holdfast.jobs.upkeep import TTL
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.faults import STEP_BACK
from holdfast.testing.simulation.history import Call
from holdfast.testing.simulation.ledger import Entry
from holdfast.testing.simulation.plan import LEASE, SCAN

# With the production worker: until the lease of a lost upkeep has ended, another looks for it, and its turn comes.
_REAL_SCAN = TTL + TTL / 3 + 1.0


def intervals(run: Run) -> Iterator[str]:
    """At any instant of the database at most one lease that has not ended."""
    killed = {event.data: event.step for event in run.history.happened("killed")}
    newest: dict[str, int] = {}
    last_claim = 0
    for entry in run.ledger.entries:
        if entry.what != "moved":
            continue
        assert entry.token is not None or not entry.claimed
        if entry.claimed and entry.token is not None:
            if entry.token <= newest.get(entry.id, 0):
                yield f"job {entry.id}: claimed with token {entry.token}, after {newest[entry.id]}"
            if entry.token < last_claim:
                yield f"job {entry.id}: claimed with token {entry.token}, after another claim drew {last_claim}"
            last_claim = entry.token
            if entry.was_held is not None:
                yield f"job {entry.id}: claimed while held for {entry.was_held}"
        elif entry.was_state == "running" and entry.state == "running" and entry.token == entry.was_token:
            if entry.until != entry.was_until and (entry.was_until or 0) <= entry.at:
                yield f"job {entry.id}: renewed by {entry.process} {entry.at - (entry.was_until or 0):.3f} s after its lease ended"
        elif entry.rescued and _too_early(entry, killed) and not run.stepped_under(entry):
            yield (
                f"job {entry.id}: taken from {entry.was_owner} by {entry.process} "
                f"{(entry.was_until or 0) - entry.at:.3f} s before its lease ended"
            )
        if entry.token is not None:
            newest[entry.id] = max(entry.token, newest.get(entry.id, 0))


def _too_early(entry: Entry, killed: dict[str, int]) -> bool:
    """Before the lease's end, and not from a process that was known to be dead."""
    still_held = entry.was_until is not None and entry.at < entry.was_until
    return still_held and killed.get(entry.was_owner or "", entry.step + 1) > entry.step


def fenced(run: Run) -> Iterator[str]:
    """Whoever ends a run drew the token that the job has then."""
    for job_id, entries in run.ledger.by_job.items():
        token, owner, running = None, "", False
        for entry in entries:
            if entry.claimed or entry.rescued:
                token, owner, running = entry.token, entry.process, True
            elif running and entry.ended:
                if (entry.token, entry.process) != (token, owner):
                    yield (
                        f"job {job_id}: {entry.process} wrote {entry.state} at {entry.moment:.3f} s with token "
                        f"{entry.token}, while {owner} held it with {token}"
                    )
                running = False


def truthful(run: Run) -> Iterator[str]:
    """Accepted means written, once, under that token; refused means that the token was no longer the newest."""
    left = _left(run)
    tokens = _current(run)
    accepted: Counter[tuple[str, int]] = Counter()
    twice = _asked_twice(run)
    for call in run.history.of("finish", "release", "hold"):
        if call.answered is None or call.kind == "unknown":
            continue
        if call.kind == "fail":
            for claim in _claims(call):
                if any(call.spans(entry) for entry in left.get(claim, [])):
                    yield f"job {claim[0]}: {call.process} was told {call.answer} by {call.verb}; it was written"
            continue
        for (job_id, token), ok in zip(_claims(call), call.answer, strict=True):
            own = [entry for entry in left.get((job_id, token), []) if call.spans(entry)]
            if ok:
                accepted[job_id, token] += 1
                if not left.get((job_id, token)):
                    yield f"job {job_id}: {call.process} was told that {call.verb} with {token} was accepted; nothing was written"
            elif own and (job_id, token) not in twice:
                yield f"job {job_id}: {call.process} was told that {call.verb} with {token} was refused; it was written"
            elif not any(step <= call.answered.step for step in tokens.get((job_id, token), [])):
                yield f"job {job_id}: {call.process} was told that its claim {token} was lost; it still held it"
    for (job_id, token), number in accepted.items():
        if number > 1:
            yield f"job {job_id}: {number} ends were accepted for token {token}"
    for call in run.history.of("settle"):
        if call.kind == "ok" and call.answer and not left.get(call.asked):
            yield f"job {call.asked[0]}: settle said that {call.asked[1]} was accepted; it was not"
    yield from _renewals(run)


def _renewals(run: Run) -> Iterator[str]:
    held = {
        (entry.id, entry.token, entry.until, entry.reason)
        for entry in run.ledger.of("moved")
        if entry.state == "running"
    }
    for call in run.history.of("renew"):
        if call.kind == "ok":
            for renewal in call.answer:
                told = (renewal.job_id, renewal.token, renewal.lease_until, renewal.cancel)
                if told not in held:
                    yield f"job {renewal.job_id}: {call.process} was told {told} by renew; nothing such is stored"


def rescued_soon(run: Run) -> Iterator[str]:
    """Within a round of upkeep, when some process was well all the time."""
    bound = (_REAL_SCAN if run.plan.is_real else SCAN) * 1.2 + 0.5
    for entry in run.ledger.entries:
        if entry.rescued and entry.was_until is not None and entry.at - entry.was_until > bound:
            began = entry.moment - (entry.at - entry.was_until)
            if not run.stepped_within(began, entry.moment) and any(
                run.well(process, began, entry.moment) for process in run.workers
            ):
                yield f"job {entry.id}: rescued {entry.at - entry.was_until:.3f} s after its lease ended"


def kept_by_the_well(run: Run) -> Iterator[str]:
    """A lease is lost only by a worker that was killed, paused, kept from the store, or never told of it."""
    untold = _untold(run)
    for entry in run.ledger.entries:
        if not entry.rescued or entry.was_until is None or entry.was_owner not in run.lives:
            continue
        if (entry.id, entry.was_token) in untold:
            continue
        ended = entry.moment - (entry.at - entry.was_until)
        granted = ended - LEASE - STEP_BACK  # at the earliest: a step back makes a lease longer
        if run.stepped_within(granted, entry.moment) or ended > entry.moment:
            continue
        if run.well(entry.was_owner, ended - LEASE, entry.moment):
            yield f"job {entry.id}: {entry.was_owner} lost its lease at {ended:.3f} s although nothing disturbed it"


def _untold(run: Run) -> set[tuple[str, int | None]]:
    """Claims that came with a finish whose answer was lost: the finish could be settled, the token nobody knows."""
    lost = [event for event in run.history.happened("sprung") if "lost reply" in event.data]
    calls = [
        call
        for call in run.history.of("finish")
        for event in lost
        if call.answered is not None
        and call.process == event.process
        and call.invoked.step <= event.step <= call.answered.step
    ]
    claimed = [entry for entry in run.ledger.entries if entry.claimed]
    return {(entry.id, entry.token) for call in calls for entry in claimed if call.spans(entry)}


def stopped_when_lost(run: Run) -> Iterator[str]:
    """The body of a rescued job ends within a renewal period in which its worker is well."""
    if run.plan.deaf:
        return
    over: dict[tuple[str, int], float] = {}
    killed = {event.data: event.moment for event in run.history.happened("killed")}
    for event in run.history.happened("body over"):
        over[event.data] = event.moment
    begun = {event.data[:2] for event in run.history.happened("body")}
    bound = LEASE / 3 * 1.1 + 0.5
    for entry in run.ledger.entries:
        if not entry.rescued or entry.was_owner not in run.lives or (entry.id, entry.was_token) not in begun:
            continue
        key = (entry.id, entry.was_token or 0)
        last = over.get(key, min(run.ended, killed.get(entry.was_owner, run.ended)))
        if last - entry.moment > bound and run.well(
            entry.was_owner, entry.moment, min(last, entry.moment + bound)
        ):
            yield f"job {entry.id}: {entry.was_owner} went on for {last - entry.moment:.3f} s after it was lost"


def _left(run: Run) -> dict[tuple[str, int], list[Entry]]:
    """Ends of runs by their holders."""
    found: dict[tuple[str, int], list[Entry]] = defaultdict(list)
    for job_id, entries in run.ledger.by_job.items():
        running = False
        for entry in entries:
            if entry.claimed:
                running = True
            elif entry.rescued:
                running = False
            elif running and entry.ended:
                running = False
                found[job_id, entry.token or 0].append(entry)
    return found


def _current(run: Run) -> dict[tuple[str, int], list[int]]:
    """For each claim, the steps at which it ended, by its holder or by a rescue."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    for job_id, entries in run.ledger.by_job.items():
        for entry in entries:
            if entry.rescued:
                found[job_id, entry.was_token or 0].append(entry.step)
            elif entry.ended:
                found[job_id, entry.token or 0].append(entry.step)
    return found


def _asked_twice(run: Run) -> set[tuple[str, int]]:
    """A worker that leaves, or cannot wait, puts back what is being put back or held: one of the two is refused, and rightly."""
    number = Counter(claim for call in run.history.of("release", "hold") for claim in _claims(call))
    return {claim for claim, times in number.items() if times > 1 and run.plan.is_real}


def _claims(call: Call) -> list[tuple[str, int]]:
    return [asked[:2] for asked in call.asked]
