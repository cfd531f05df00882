"""An idempotency key has one effect and one answer, and only its holder gives it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from holdfast.store.idempotency import KeyBusy, KeyDone, KeyMismatch
from holdfast.store.records import ABANDONED
from holdfast.testing.simulation.checkers.run import IN_TRANSACTION, Run
from holdfast.testing.simulation.contenders import KEEP_ANSWER
from holdfast.testing.simulation.history import Call
from holdfast.testing.simulation.ledger import Entry


def once(run: Run) -> Iterator[str]:
    effects = [(entry.id, str(entry.number)) for entry in run.ledger.of("row") if entry.reason == "keyed"]
    for key, number in Counter(key for key, _ in effects).items():
        if number > 1:
            yield f"key {key}: {number} effects were committed"
    for call in run.history.of("begin_key"):
        if isinstance(call.answer, KeyDone) and (call.asked[0], call.answer.response) not in effects:
            yield f"key {call.asked[0]}: answered {call.answer.response}, and no such effect was committed"
    for call in run.history.of("finish_key"):
        if call.kind == "ok" and call.asked[0] not in dict(effects):
            yield f"key {call.asked[0]}: its effect was acknowledged and is not there"


def held(run: Run) -> Iterator[str]:
    """One holder at a time, with growing tokens, and the answer is the holder's."""
    finishes, abandons = run.history.of("finish_key"), run.history.of("abandon_key")
    last: dict[str, Entry] = {}
    for entry in run.ledger.of("key", "key_gone"):
        before = last.get(entry.id)
        last[entry.id] = entry
        if entry.what == "key_gone":
            assert before is not None
            yield from _may_go(before, entry, abandons)
            continue
        if before is not None and entry.token != before.token:
            if (entry.token or 0) < (before.token or 0):
                yield f"key {entry.id}: token {entry.token} after {before.token}"
            if before.what == "key" and (before.until or 0) > entry.at:
                yield f"key {entry.id}: taken {(before.until or 0) - entry.at:.3f} s before its holder's lease ended"
        if (
            before is not None
            and before.what == "key"
            and entry.token == before.token
            and entry.reason is None
        ):
            yield f"key {entry.id}: taken over with the token {entry.token} of its last holder"
        kept = (entry.until or 0) - entry.at
        # A transaction reads the clock when it begins, and may take a while until it writes.
        in_time = -IN_TRANSACTION < kept - KEEP_ANSWER < 1
        if entry.reason is not None and not in_time and not run.stepped_under(entry):
            yield f"key {entry.id}: its answer is kept for {kept:.0f} s, not {KEEP_ANSWER} s"
        if entry.reason is not None and not any(
            call.asked == (entry.id, entry.token) and call.spans(entry) for call in finishes
        ):
            yield f"key {entry.id}: answered under token {entry.token} by {entry.process}, which did not hold it"


def _may_go(before: Entry, gone: Entry, abandons: list[Call]) -> Iterator[str]:
    kept = (before.until or 0) + (ABANDONED if before.reason is None else 0)
    own = any(call.asked == (gone.id, gone.token) and call.spans(gone) for call in abandons)
    if gone.at < kept and not (own and before.reason is None):
        yield f"key {gone.id}: forgotten at {gone.moment:.3f} s, {kept - gone.at:.0f} s early"


def same_request(run: Run) -> Iterator[str]:
    """A key that stands for another request is a mismatch, and only then."""
    rows: dict[str, list[Entry]] = defaultdict(list)
    for entry in run.ledger.of("key", "key_gone"):
        rows[entry.id].append(entry)
    for call in run.history.of("begin_key"):
        if call.kind != "ok":
            continue
        key, fingerprint = call.asked
        stored = _seen_by(call, rows[key])
        if isinstance(call.answer, KeyMismatch) and stored <= {fingerprint, None}:
            yield f"key {key}: a mismatch, and nothing but {fingerprint!r} was stored"
        if isinstance(call.answer, KeyDone | KeyBusy) and fingerprint not in stored:
            yield f"key {key}: {call.answer} for {fingerprint!r}, and {stored} was stored"


def _seen_by(call: Call, rows: list[Entry]) -> set[str | None]:
    """The fingerprints that were stored at some time between question and answer; None: none was."""
    assert call.answered is not None
    stored: set[str | None] = {None}
    for entry in rows:
        if entry.step > call.answered.step:
            break
        now = entry.fingerprint if entry.what == "key" else None
        stored = {now} if entry.step < call.invoked.step else stored | {now}
    return stored
