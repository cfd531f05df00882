"""What became of a job's claims that did not succeed, and how it was moved: kept in its row, and gone with it.

One that succeeds at its first attempt has none: what is to be said of that is in its row anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown

KEPT = 50  # entries of what put the job off, and as many of all others: the newest
PUT_OFF = ("held", "snoozed", "released", "moved")  # what repeats the last one is counted there


class Entry(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={
        "outcome": "o", "number": "n", "ended_at": "e", "attempt": "a", "token": "t", "fence": "f", "worker": "w",
        "began_at": "b", "words": "r", "held": "h", "key": "k", "until": "u", "times": "c", "due_at": "d", "priority": "p",
    },
):  # fmt: skip
    """One claim that has ended, or one move. Short names: a job that fails often carries many."""

    # Of a claim: failed, snoozed, held, released, interrupted, dead, unknown, cancelled, succeeded. Else: moved.
    outcome: str
    number: int = 0  # from 1; of what the entry counts, the last
    ended_at: float = 0.0
    attempt: int = 0
    token: int | None = None
    fence: int | None = None  # the token that took the claim away from its dead worker
    worker: str | None = None
    began_at: float | None = None  # of several that it counts, the first
    words: str | None = None
    held: str | None = None  # by what it was held from then on
    key: str | None = None  # of the guard or lock
    until: float | None = None  # when it would be due again
    times: int = 1  # so many like it, one after the other
    due_at: float | None = None  # of a move: the new time
    priority: int | None = None  # of a move: the new one


def told_of(outcome: Outcome) -> tuple[str, str | None]:
    """Which word an entry has for it, and which words it keeps: what failed says so in the errors of its job."""
    match outcome:
        case Done():
            return "succeeded", None
        case Retry():
            return "failed", None
        case Snooze(guard=guard, reason=reason):
            return "snoozed" if guard is None else "held", reason
        case Cancel(reason=reason):
            return "cancelled", reason
        case Dead():
            return "dead", None
        case Unknown():
            return "unknown", None


_entries = msgspec.json.Decoder(list[Entry])
_ALIKE = ("outcome", "attempt", "words", "held", "key", "due_at", "priority")


def entries_of(text: str | None) -> list[Entry]:
    return [] if text is None else _entries.decode(text)


def tell(text: str | None, entry: Entry) -> str:
    """With one more entry."""
    entries = entries_of(text)
    last = entries[-1] if entries else None
    if last is not None and _repeats(entry, last):
        entries[-1] = msgspec.structs.replace(
            entry, number=last.number, began_at=last.began_at, times=last.times + 1
        )
    else:
        entries.append(msgspec.structs.replace(entry, number=1 if last is None else last.number + 1))
    return msgspec.json.encode(_newest(entries)).decode()


def _repeats(entry: Entry, last: Entry) -> bool:
    return entry.outcome in PUT_OFF and all(getattr(entry, name) == getattr(last, name) for name in _ALIKE)


def _newest(entries: Sequence[Entry]) -> list[Entry]:
    left = {True: KEPT, False: KEPT}
    kept = list[Entry]()
    for entry in reversed(entries):
        is_put_off = entry.outcome in PUT_OFF
        if left[is_put_off] > 0:
            left[is_put_off] -= 1
            kept.append(entry)
    return kept[::-1]
