"""Alerts: told in the commit that keeps them, once when they begin and once when they are over, and only of what holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.testing.simulation.alerts.spec import KIND, NEVER, TASK, TOLD
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.ledger import Fact

# Seconds that what a leader has seen may be old when it commits: its lease, and the transaction that began within it.
STALE = 16.0
_Message = tuple[int, str, str]  # the commit, the alert, opened or over


class _Args(msgspec.Struct):
    alert: dict[str, Any]


def with_its_row(run: Run) -> Iterator[str]:
    kept: Counter[_Message] = Counter((row.commit, row["id"], state) for row, state in _told(run))
    sent: Counter[_Message] = Counter()
    for job_id, message in _messages(run).items():
        entry = run.ledger.made[job_id].entry
        assert entry is not None
        sent[entry.commit, message["id"], message["state"]] += 1
    for (_, alert, state), number in (kept - sent).items():
        yield f"alert {alert} is {state}, and in that commit {number} messages are missing"
    for (_, alert, state), number in (sent - kept).items():
        yield f"alert {alert}: {number} messages that it is {state}, in a commit that does not keep it"


def reaches_its_handler(run: Run) -> Iterator[str]:
    """At least once, unless its job died with its workers."""
    heard = {event.data[0] for event in run.history.happened(TOLD)}
    for job_id, message in _messages(run).items():
        if job_id not in heard and run.remaining.get(job_id, "pruned") in ("succeeded", "pruned"):
            yield f"the message {job_id}, that {message['cause']} is {message['state']}, succeeded and told nobody"


def its_rows_with_its_success(run: Run) -> Iterator[str]:
    """What a handler with `tx` writes is there once, in the commit of its job's success."""
    over = {entry.id: entry.commit for entry in run.ledger.of("over") if entry.state == "succeeded"}
    rows = {entry.id: entry.commit for entry in run.ledger.of("row") if entry.reason == "alert"}
    number = Counter(entry.id for entry in run.ledger.of("row") if entry.reason == "alert")
    for job_id in _messages(run):
        if rows.get(job_id) != over.get(job_id) or number[job_id] > 1:
            yield f"the message {job_id} has {number[job_id]} rows of its handler, and they are not those of its success"


def told_in_order(run: Run) -> Iterator[str]:
    over: set[str] = set()
    begun: set[str] = set()
    for event in run.history.happened(TOLD):
        _, alert, cause, state = event.data
        if state == "over":
            over.add(alert)
        elif alert in over and alert not in begun:
            yield f"alert {alert} ({cause}): that it is over was told before that it has begun"
        begun.add(alert)


def one_for_a_cause(run: Run) -> Iterator[str]:
    standing: set[str] = set()
    for row, state in _told(run):
        if state == "over":
            standing.discard(row["cause"])
        elif row["cause"] in standing:
            yield f"{row['cause']} has a second alert at {row.moment:.3f} s, and the first is open"
        else:
            standing.add(row["cause"])


def of_what_holds(run: Run) -> Iterator[str]:
    spells = _spells(run)
    for row, state in _told(run):
        cause, moment = row["cause"], row.moment
        if state != "opened" or row["kind"] != KIND:
            continue
        if cause.startswith(NEVER):
            yield f"{cause} is told, and whoever raised it has rolled that back"
        elif not any(begin <= moment and moment - STALE <= end for begin, end in spells[cause]):
            yield f"{cause} is told as new at {moment:.3f} s, and did not hold for {STALE:g} s before"


def _told(run: Run) -> Iterator[tuple[Fact, str]]:
    """The commits in which alerts begin and end."""
    for row in run.ledger.facts["alert"]:
        if row.change == "INSERT":
            yield row, "opened"
        elif row.change == "UPDATE" and row["ended_at"] is not None:
            yield row, "over"


def _messages(run: Run) -> dict[str, dict[str, Any]]:
    return {
        made.id: msgspec.json.decode(made.args, type=_Args).alert
        for made in run.ledger.made.values()
        if made.task == TASK
    }


def _spells(run: Run) -> dict[str, list[tuple[float, float]]]:
    """From when until when each cause held."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    since: dict[str, float] = {}
    for row in run.ledger.facts["alert_cause"]:
        if row.change == "DELETE":
            found[row["cause"]].append((since.pop(row["cause"]), row.moment))
        else:
            since.setdefault(row["cause"], row.moment)
    for cause, begin in since.items():
        found[cause].append((begin, run.ended))
    return found
