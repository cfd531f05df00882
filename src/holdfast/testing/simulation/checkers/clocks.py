"""I14: due times, expiries and leases are decided on the database's clock, whatever other clocks say."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import IN_TRANSACTION, Run
from holdfast.testing.simulation.ledger import Entry, Made
from holdfast.testing.simulation.plan import LEASE

_SAME = 1e-3
_TIMED = (None, "arrived", "ordering", "time")  # from here a job is ready only when it is due


def on_the_database(run: Run) -> Iterator[str]:
    anew: set[str] = set()  # a person has decided about them: they expire no more
    for entry in run.ledger.entries:
        made = run.ledger.made.get(entry.id)
        if made is None:
            continue
        if entry.was_state == "unknown" and entry.state == "queued":
            anew.add(entry.id)
        expiry = None if entry.id in anew else made.expires_at
        if entry.what == "enqueued":
            yield from _stored(run, made, entry)
        became_ready = entry.state == "queued" and entry.held is None and entry.was_held in _TIMED
        if became_ready and (entry.run_at or 0) > entry.at + _SAME and not run.stepped_under(entry):
            yield f"job {entry.id}: ready {(entry.run_at or 0) - entry.at:.3f} s before it was due"
        if entry.claimed:
            if (expiry or entry.at + 1) <= entry.at:
                yield f"job {entry.id}: claimed {entry.at - (expiry or 0):.3f} s after it had expired"
            if abs((entry.until or 0) - entry.at - LEASE) > _SAME:
                yield f"job {entry.id}: claimed for {(entry.until or 0) - entry.at:.3f} s instead of {LEASE} s"
        elif entry.renewed and abs((entry.until or 0) - entry.at - LEASE) > _SAME:
            yield f"job {entry.id}: renewed for {(entry.until or 0) - entry.at:.3f} s instead of {LEASE} s"
        elif entry.reason == "expired" and (expiry or 0) > entry.at and not run.stepped_under(entry):
            yield f"job {entry.id}: expired {(expiry or 0) - entry.at:.3f} s too early"


def _stored(run: Run, made: Made, entry: Entry) -> Iterator[str]:
    spec = run.spec(made)
    if spec is None:
        return
    if spec.at is not None and abs((entry.run_at or 0) - run.plan.epoch - spec.at) > _SAME:
        yield f"job {entry.id}: due at {run.plan.epoch + spec.at}, stored as {entry.run_at}"
    for name, seconds, stored in (
        ("due", spec.delay, entry.run_at),
        ("to expire", spec.expires, made.expires_at),
    ):
        if seconds is None:
            continue
        late = entry.at + seconds - (stored or 0)
        alone = run.plan.ops[run.args(made).op].kind == "enqueue"
        if not alone and run.stepped_under(entry):
            continue
        if not -_SAME < late < (_SAME if alone else IN_TRANSACTION):
            yield f"job {entry.id}: {name} in {seconds} s, stored as {(stored or 0) - entry.at:.3f} s from then"
