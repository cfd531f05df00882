"""Leases by name are exclusive and fence a register; an idempotency key has one effect and one answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from holdfast.store.records import KeyDone, KeyMismatch
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.ledger import Entry


def named_leases(run: Run) -> Iterator[str]:
    held: dict[str, Entry] = {}
    newest: dict[str, int] = defaultdict(int)
    written: dict[str, int] = defaultdict(int)
    released = {call.asked for call in run.history.of("release_lease")}
    stolen = bool(run.history.of("steal"))
    for entry in run.ledger.of("lease", "lease_gone", "register"):
        before, token = held.get(entry.id), entry.token or 0
        left = 0.0 if before is None else (before.until or 0.0) - entry.at
        if entry.what == "register":
            if token < written[entry.id]:
                yield f"register {entry.id}: {entry.owner} wrote with {token} after {written[entry.id]}"
            written[entry.id] = token
        elif entry.what == "lease_gone":
            held.pop(entry.id, None)
            if left > 0 and not stolen and (entry.id, token) not in released:
                yield f"lease {entry.id}: ended {left:.3f} s early, and nobody asked for it"
        else:
            if before is not None and token == before.token and left <= 0:
                yield f"lease {entry.id}: renewed by {entry.owner} after it had ended"
            if (before is None or token != before.token) and token <= newest[entry.id]:
                yield f"lease {entry.id}: given with token {token}, after {newest[entry.id]}"
            if before is not None and before.owner != entry.owner and left > 0:
                yield f"lease {entry.id}: given to {entry.owner} {left:.3f} s before {before.owner}'s ended"
            held[entry.id], newest[entry.id] = entry, token


def keys(run: Run) -> Iterator[str]:
    effects = [(entry.id, str(entry.number)) for entry in run.ledger.of("row") if entry.reason == "keyed"]
    for key, number in Counter(key for key, _ in effects).items():
        if number > 1:
            yield f"key {key}: {number} effects were committed"
    prints: dict[str, set[str]] = defaultdict(set)
    begun = run.history.of("begin_key")
    for call in begun:
        prints[call.asked[0]].add(call.asked[1])
    for call in begun:
        if isinstance(call.answer, KeyDone) and (call.asked[0], call.answer.response) not in effects:
            yield f"key {call.asked[0]}: answered {call.answer.response}, and no such effect was committed"
        if isinstance(call.answer, KeyMismatch) and len(prints[call.asked[0]]) < 2:
            yield f"key {call.asked[0]}: a mismatch, with one fingerprint only"
    last: dict[str, Entry] = {}
    for entry in run.ledger.of("key", "key_gone"):
        before = last.get(entry.id)
        if before is not None and entry.what == "key" and entry.token != before.token:
            if (entry.token or 0) < (before.token or 0):
                yield f"key {entry.id}: token {entry.token} after {before.token}"
            if before.what == "key" and (before.until or 0) > entry.at:
                yield f"key {entry.id}: taken {(before.until or 0) - entry.at:.3f} s before its holder's lease ended"
        last[entry.id] = entry
    for call in run.history.of("finish_key"):
        if call.kind == "ok" and call.asked[0] not in dict(effects):
            yield f"key {call.asked[0]}: its effect was acknowledged and is not there"
