"""Counters that prove what a run of many seeds went through. A run in which something never happened proves nothing of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.store.idempotency import KeyBusy, KeyDone, KeyMismatch
from holdfast.store.states import State
from holdfast.testing.simulation.alerts import sometimes as alerts
from holdfast.testing.simulation.checkers import Run
from holdfast.testing.simulation.events import sometimes as events
from holdfast.testing.simulation.faults import COMMON_POINTS
from holdfast.testing.simulation.guards import sometimes as guards
from holdfast.testing.simulation.history import Call
from holdfast.testing.simulation.ledger import Entry
from holdfast.testing.simulation.sagas import sometimes as sagas
from holdfast.testing.simulation.service import sometimes as service

# Seeds of a kind: a run of at least so many must have seen all of its list.
ENOUGH = {"store": 240, "worker": 150, "guards": 24, "events": 120, "sagas": 150, "alerts": 60}

# Of the nemesis.
_FAULTS = [
    "slow disk",
    "full disk",
    *(f"crash {point}" for point in (*COMMON_POINTS, "schedule.before_tick")),
    *(
        f"{kind} {where}.before_commit"
        for kind in ("refused", "lost request")
        for where in ("store", "transaction")
    ),
    *(f"lost reply {where}.after_commit" for where in ("store", "transaction")),
]
# Of the ledger and the history, below.
_SEEN = [
    "process killed",
    "process paused",
    "clock jumped",
    "database's clock stepped",
    "drained",
    "job stolen after its lease",
    "job taken from a dead process at once",
    "zombie's write refused",
    "zombie's renewal refused",
    "lease lost in a transaction",
    "unknown commit that happened",
    "unknown commit that did not",
    "unknown enqueue that happened",
    "unknown enqueue that did not",
    "unknown enqueue repeated",
    "suspect run alone",
    "dead by strikes",
    "dead by its outcome",
    "unknown by its outcome",
    "retried",
    "snoozed",
    "held by hand",
    "released",
    "outcomes of several kinds in one call",
    "transaction rolled back",
    "transaction cut off",
    "write lock waited for too long",
    "unique key taken",
    "queued job replaced",
    "job not replaced: it ran",
    "too many waiting",
    "waited for its turn",
    "waited for its time",
    "waited for a slot",
    "waited for its tenant's window",
    "expired",
    "cancelled while queued",
    "asked to stop while running",
    "pruned",
    "queue paused",
    "tenant paused",
    "epoch raised",
    "lease refused",
    "lease taken after its end",
    "lease stolen by an operator",
    "register refused an old token",
    "key answered from store",
    "key busy",
    "key mismatch",
    "key taken over",
    "key abandoned",
    "tick lost to another scheduler",
    "tick made",
    "zombie's step refused",
    "unknown effect said to be done",
    "unknown effect said not to be done",
]
# Of the list above, what real workers and their callers do not do.
_NOT_BY_WORKERS = {
    "held by hand",
    "outcomes of several kinds in one call",  # their program has handlers of ends, and writes those one by one
    "transaction cut off",
    "queued job replaced",
    "job not replaced: it ran",
    "write lock waited for too long",
    "pruned",
    "epoch raised",
    "register refused an old token",
    *(name for name in _SEEN if name.startswith("key ")),
}
REQUIRED = {
    "store": [*_FAULTS, *_SEEN],
    "worker": [*_FAULTS, *(name for name in _SEEN if name not in _NOT_BY_WORKERS), *service.SEEN],
    "guards": [
        "slow disk",
        "full disk",
        "refused store.before_commit",
        "lost request store.before_commit",
        "lost reply store.after_commit",
        *guards.SEEN,
    ],
    "events": [
        "slow disk",
        "full disk",
        *(
            f"{kind} {where}.before_commit"
            for kind in ("refused", "lost request")
            for where in ("store", "transaction")
        ),
        *(f"lost reply {where}.after_commit" for where in ("store", "transaction")),
        *events.SEEN,
    ],
    "sagas": [
        "slow disk",
        "full disk",
        *(f"crash store.{when}_commit" for when in ("before", "after")),
        *(f"{kind} store.before_commit" for kind in ("refused", "lost request")),
        "lost reply store.after_commit",
        *sagas.SEEN,
    ],
    "alerts": alerts.SEEN,
}


def count(run: Run, counts: Counter[str]) -> None:
    counts.update(_in_ledger(run))
    counts.update(_in_history(run))
    if run.plan.kind == "worker":
        counts.update(service.seen(run))
    if run.plan.kind == "guards":
        counts.update(guards.seen(run))
    if run.plan.kind == "events":
        counts.update(events.seen(run))
    if run.plan.kind == "sagas":
        counts.update(sagas.seen(run))
    if run.plan.kind == "alerts":
        counts.update(alerts.seen(run))


def missing(counts: Counter[str], kind: str) -> list[str]:
    return [name for name in REQUIRED[kind] if not counts[name]]


# --- what the database saw ---

_WAITS = {
    "ordering": "waited for its turn",
    "time": "waited for its time",
    "concurrency": "waited for a slot",
    "tenant": "waited for its tenant's window",
    "guard": "held by hand",
}


def _in_ledger(run: Run) -> Iterator[str]:
    holders: dict[str, Entry] = {}
    keys: dict[str, Entry] = {}
    for entry in run.ledger.entries:
        match entry.what:
            case "moved":
                yield from _moved(entry)
            case "over" if entry.reason == "expired":
                yield "expired"
            case "over" if entry.was_state == "queued":
                yield "cancelled while queued"
            case "pruned":
                yield "pruned"
            case "queue_paused":
                yield "queue paused"
            case "tenant_paused":
                yield "tenant paused"
            case "tick":
                yield "tick made"
            case "lease":
                if (before := holders.get(entry.id)) is not None and before.owner != entry.owner:
                    yield "lease taken after its end"
                holders[entry.id] = entry
            case "lease_gone":
                holders.pop(entry.id, None)
            case "key":
                if (before := keys.get(entry.id)) is not None and before.token != entry.token:
                    yield "key taken over"
                keys[entry.id] = entry


def _moved(entry: Entry) -> Iterator[str]:
    if entry.held in _WAITS and entry.held != entry.was_held:
        yield _WAITS[entry.held]
    if entry.rescued:
        late = entry.was_until is not None and entry.at >= entry.was_until
        yield "job stolen after its lease" if late else "job taken from a dead process at once"
    if entry.claimed and entry.alone:
        yield "suspect run alone"
    if entry.state == "dead":
        by_strikes = (entry.reason or "").startswith("its worker died")
        yield "dead by strikes" if by_strikes else "dead by its outcome"
    if entry.state == "unknown":
        yield "unknown by its outcome"
    if entry.was_state == "running" == entry.state and entry.reason is not None:
        yield "asked to stop while running"


# --- what the clients saw ---

_EVENTS = {"killed": "process killed", "paused": "process paused", "drained": "drained"}
_WAS = {State.RUNNING: "ran"}
_OUTCOMES = {"Retry": "retried", "Snooze": "snoozed"}


def _in_history(run: Run) -> Iterator[str]:
    rows = [entry for entry in run.ledger.of("row") if entry.reason == "order"]
    made = {entry.id: entry for entry in run.ledger.of("enqueued")}
    for event in run.history.events:
        if event.kind == "event":
            if event.verb in _EVENTS:
                yield _EVENTS[event.verb]
            if event.verb == "fault":
                if "host clock" in event.data:
                    yield "database's clock stepped"
                elif "clock" in event.data:
                    yield "clock jumped"
    for call in run.history.calls:
        match call.kind:
            case "ok":
                yield from _ok(call)
            case "fail":
                yield from _fail(call)
            case "unknown" if call.verb == "transaction" and call.answered is not None:
                happened = any(row.number == call.asked[0] and call.spans(row) for row in rows)
                yield f"unknown commit that {'happened' if happened else 'did not'}"
            case "unknown" if call.verb == "enqueue" and call.answered is not None:
                happened = any(job_id in made and call.spans(made[job_id]) for job_id in call.asked[1])
                yield f"unknown enqueue that {'happened' if happened else 'did not'}"


def _ok(call: Call) -> Iterator[str]:
    match call.verb:
        case "finish" | "hold" | "release":
            if not all(call.answer):
                yield "zombie's write refused"
            elif call.verb == "release":
                yield "released"
            elif call.verb == "finish":
                yield from (_OUTCOMES[asked[2]] for asked in call.asked if asked[2] in _OUTCOMES)
                if len({asked[2] for asked in call.asked}) > 1:
                    yield "outcomes of several kinds in one call"
        case "renew" if len(call.answer) < len(call.asked):
            yield "zombie's renewal refused"
        case "enqueue" | "transaction":
            if not all(stored.created for stored in call.answer):
                yield "unique key taken"
            for standing in (stored.standing for stored in call.answer if stored.standing is not None):
                yield (
                    "queued job replaced"
                    if standing.replaced
                    else f"job not replaced: it {_WAS.get(standing.state, 'was')}"
                )
            if call.verb == "enqueue" and call.asked[2]:
                yield "unknown enqueue repeated"
        case "acquire" if call.answer is None:
            yield "lease refused"
        case "steal" if call.answer:
            yield "lease stolen by an operator"
        case "register" if call.answer == 0:
            yield "register refused an old token"
        case "tick" if call.answer is None:
            yield "tick lost to another scheduler"
        case "step" if not call.answer:
            yield "zombie's step refused"
        case "resolve":
            yield f"unknown effect said {'' if call.asked[2] else 'not '}to be done"
        case "raise_epoch":
            yield "epoch raised"
        case "abandon_key" if call.answer:
            yield "key abandoned"
        case "begin_key":
            yield from _key(call.answer)


def _key(answer: object) -> Iterator[str]:
    match answer:
        case KeyDone():
            yield "key answered from store"
        case KeyBusy():
            yield "key busy"
        case KeyMismatch():
            yield "key mismatch"


_FAILURES = {
    "_Rollback": "transaction rolled back",
    "TransactionEnded": "transaction cut off",
    "StoreBusy": "write lock waited for too long",
    "TooManyWaiting": "too many waiting",
    "LeaseLost": "lease lost in a transaction",
}


def _fail(call: Call) -> Iterator[str]:
    name = str(call.answer).split(":", 1)[0]
    if name in _FAILURES:
        yield _FAILURES[name]
