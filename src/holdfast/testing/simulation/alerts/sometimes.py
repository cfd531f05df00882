"""Counters of what fleets with alerts went through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.testing.simulation.alerts.spec import TOLD
from holdfast.testing.simulation.checkers.run import Run

SEEN = [
    "process killed",
    "process paused",
    "database's clock stepped",
    "lease taken after its end",
    "crash alerts.looked",
    "stall alerts.looked",
    "crash alerts.before_commit",
    "alert opened",
    "alert over",
    "alert opened again",
    "alert that flapped",
    "raised and ended, and never told",
    "rolled back",
    "a message told by another process than the leader's",
    "a message failed, and told later",
]


def seen(run: Run) -> Iterator[str]:
    opened: Counter[str] = Counter()
    for row in run.ledger.facts["alert"]:
        if row.change == "INSERT":
            opened[row["cause"]] += 1
            yield "alert opened" if opened[row["cause"]] == 1 else "alert opened again"
        elif row["ended_at"] is not None:
            yield "alert over"
    quiet: dict[str, bool] = {}
    for row in run.ledger.facts["alert"]:
        is_quiet = row["quiet_since"] is not None
        if quiet.get(row["id"]) and not is_quiet:
            yield "alert that flapped"
        quiet[row["id"]] = is_quiet
    ended = {row["cause"] for row in run.ledger.facts["alert_cause"] if row.change == "DELETE"}
    yield from ("raised and ended, and never told" for cause in sorted(ended) if not opened[cause])
    if any(
        call.kind == "fail" and "Rollback" in str(call.answer) for call in run.history.of("roll back alert")
    ):
        yield "rolled back"
    yield from _messages(run)


def _messages(run: Run) -> Iterator[str]:
    tried = Counter(event.data[0] for event in run.history.happened("body"))
    for event in run.history.happened(TOLD):
        entry = run.ledger.made[event.data[0]].entry
        if entry is not None and entry.process != event.process:
            yield "a message told by another process than the leader's"
        if tried[event.data[0]] > 1:
            yield "a message failed, and told later"
