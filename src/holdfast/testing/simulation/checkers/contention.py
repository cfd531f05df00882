"""Leases by name are exclusive, fence a register, and their holders are told the truth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import Call
from holdfast.testing.simulation.ledger import Entry


def exclusive(run: Run) -> Iterator[str]:
    held: dict[str, Entry] = {}
    newest: dict[str, int] = defaultdict(int)
    for entry in run.ledger.of("lease", "lease_gone"):
        before, token = held.pop(entry.id, None), entry.token or 0
        if entry.what == "lease_gone":
            continue
        left = 0.0 if before is None else (before.until or 0.0) - entry.at
        if before is not None and token == before.token and left <= 0:
            yield f"lease {entry.id}: renewed by {entry.owner} after it had ended"
        if (before is None or token != before.token) and token <= newest[entry.id]:
            yield f"lease {entry.id}: given with token {token}, after {newest[entry.id]}"
        if before is not None and before.owner != entry.owner and left > 0:
            yield f"lease {entry.id}: given to {entry.owner} {left:.3f} s before {before.owner}'s ended"
        held[entry.id], newest[entry.id] = entry, token


def fencing(run: Run) -> Iterator[str]:
    """The register never takes an older token than it has."""
    written: dict[str, int] = defaultdict(int)
    for entry in run.ledger.of("register"):
        token = entry.token or 0
        if token < written[entry.id]:
            yield f"register {entry.id}: {entry.owner} wrote with {token} after {written[entry.id]}"
        written[entry.id] = token


def asked_for(run: Run) -> Iterator[str]:
    """A lease is renewed and ended by its holder, or ended by an operator, who leaves an audit row."""
    renewals, ends = run.history.of("renew_lease"), run.history.of("release_lease")
    prunes = run.history.of("prune_leases")
    steals, audited = run.history.of("steal"), run.ledger.of("audit")
    held: dict[str, Entry] = {}
    for entry in run.ledger.of("lease", "lease_gone"):
        before = held.pop(entry.id, None)
        if entry.what == "lease":
            held[entry.id] = entry
            if before is not None and before.token == entry.token and not _asked(renewals, entry):
                yield f"lease {entry.id}: renewed by {entry.process}, which does not hold {entry.token}"
        elif not _asked(ends, entry) and not (
            (entry.until or 0.0) <= entry.at and any(call.spans(entry) for call in prunes)
        ):
            if not any(call.asked == entry.id and call.spans(entry) for call in steals):
                yield f"lease {entry.id}: ended at {entry.moment:.3f} s, and nobody asked for it"
            elif not any(
                (row.id, row.process, row.step) == (f"lease:{entry.id}", entry.process, entry.step)
                for row in audited
            ):
                yield f"lease {entry.id}: stolen at {entry.moment:.3f} s without an audit row"


def _asked(calls: list[Call], entry: Entry) -> bool:
    return any(call.asked == (entry.id, entry.token) and call.spans(entry) for call in calls)


def told(run: Run) -> Iterator[str]:
    """Who is told that it holds a lease, renewed it or ended it, did."""
    given = {(entry.id, entry.token, entry.until) for entry in run.ledger.of("lease")}
    gone = {(entry.id, entry.token) for entry in run.ledger.of("lease_gone")}
    for call in run.history.of("acquire", "renew_lease", "get_lease"):
        lease = call.answer
        if call.kind == "ok" and lease is not None and (lease.name, lease.token, lease.until) not in given:
            yield f"lease {lease.name}: {call.process} was told by {call.verb} that it holds {lease.token}; it does not"
    for call in run.history.of("release_lease"):
        if call.kind == "ok" and call.answer and call.asked not in gone:
            yield f"lease {call.asked[0]}: {call.process} was told that it was released; it was not"
