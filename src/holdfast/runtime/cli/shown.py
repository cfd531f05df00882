"""Jobs and audit rows as they are shown: secrets hidden, times as people read them, or as seconds for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.kernel.masking import masked
from holdfast.runtime.cli.colour import HELD, STATES
from holdfast.runtime.cli.held import why_held
from holdfast.runtime.cli.output import say, show_fields, show_table
from holdfast.runtime.cli.steps import show_steps
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import cell, told
from holdfast.store.held_records import HeldFor
from holdfast.store.records import AuditEntry, JobRecord
from holdfast.store.saga_records import SagaState
from holdfast.store.steps import StepRecord

_USUAL = (None, SagaState.RUNNING, SagaState.WAITING, SagaState.DONE)  # the job's own state says as much
_ONLY_WHOLE = ("result", "errors")  # may be large; a listing has the last error instead
JOBS = (
    Column("id", whole=True),
    Column("task"),
    Column("queue", spare=True),
    Column("state", colours=STATES),
    Column("enqueued", spare=True),
    Column("attempt", right=True, spare=True),
    Column("why", colours=HELD),
)


# --- for programs ---


def as_listed(record: JobRecord) -> dict[str, Any]:
    """The stable keys of a job in a listing."""
    found = {name: value for name, value in as_whole(record).items() if name not in _ONLY_WHOLE}
    return {**found, "last_error": last_error(record)}


def as_whole(record: JobRecord) -> dict[str, Any]:
    found = msgspec.structs.asdict(record)
    found["args"] = masked(record.args)
    found["result"] = None if record.result is None else _read(record.result)
    found["errors"] = [msgspec.structs.asdict(error) for error in record.errors]
    found["held_by"] = msgspec.to_builtins(record.held_by)
    return found


def as_audited(entry: AuditEntry) -> dict[str, Any]:
    found = msgspec.structs.asdict(entry)
    return {**found, "before": _side(entry.before), "after": _side(entry.after)}


def _side(text: str | None) -> Any:
    """What was before, or after; what was secret in it is masked already."""
    return None if text is None else _read(text)


def _read(text: str) -> Any:
    """JSON where it is JSON; some audit rows have plain words."""
    try:
        return json.loads(text)
    except ValueError:
        return text


# --- for people ---


def as_row(record: JobRecord, now: float, saga: SagaState | None = None) -> list[object]:
    enqueued = cell(record.enqueued_at, now)
    return [
        record.id,
        record.task,
        record.queue,
        _state(record, saga),
        enqueued,
        record.attempt,
        _why(record, now),
    ]


def _state(record: JobRecord, saga: SagaState | None) -> str:
    """Of a saga's job with what became of the saga: one that was undone has a job that did all of that."""
    return str(record.state) if saga in _USUAL else f"{record.state} (saga {saga})"


def _why(record: JobRecord, now: float) -> str | None:
    if (held := why_held(record, now)) is not None:
        # That its lock is held is what the words say already.
        says_it = record.held_by is not None and record.held_by.reason is HeldFor.LOCK
        return f"held: {held}" if says_it or record.reason is None else f"held: {held}: {record.reason}"
    return record.reason or _progress(record) or last_error(record)


def _progress(record: JobRecord) -> str | None:
    """What a running job says itself: `40 %, 12 of 30`."""
    share = None if record.progress is None else f"{record.progress:.0%}".replace("%", " %")
    return ", ".join(part for part in (share, record.note) if part) or None


def last_error(record: JobRecord) -> str | None:
    return record.errors[-1].error if record.errors else None


def show_job(
    record: JobRecord,
    steps: Sequence[StepRecord],
    audit: Sequence[AuditEntry],
    now: float,
    saga: SagaState | None = None,
) -> None:
    show_fields(_identity(record, now, saga) + _life(record, now) + _keys(record))
    for error in record.errors:
        show_fields([(f"error {error.attempt}", f"{told(error.at, now)}\n{error.error}")])
    if steps:
        say()
        show_steps(record, steps, now)
    if audit:
        say()
        show_audit(audit, now)


def _identity(record: JobRecord, now: float, saga: SagaState | None) -> list[tuple[str, object]]:
    return [
        ("id", record.id),
        ("task", record.task),
        ("queue", record.queue),
        ("state", _state(record, saga)),
        ("held", why_held(record, now, whole=True)),
        ("progress", _progress(record)),
        ("reason", record.reason),
        ("arguments", json.dumps(masked(record.args), ensure_ascii=False)),
        ("result", record.result),
        ("enqueued", told(record.enqueued_at, now)),
        ("planned", told(record.due_at, now)),
        ("due", told(record.run_at, now)),
        ("looked up", told(record.look_at, now)),
        ("started", told(record.started_at, now)),
        ("finished", told(record.finished_at, now)),
    ]


def _life(record: JobRecord, now: float) -> list[tuple[str, object]]:
    return [
        ("attempt", record.attempt),
        ("interruptions", record.interruptions or None),
        ("strikes", record.strikes or None),
        ("suspect", "yes: it is run alone" if record.suspect else None),
        ("worker", record.worker),
        ("token", record.token),
        ("lease until", told(record.lease_until, now)),
        ("expires", told(record.expires_at, now)),
        ("deadline", told(record.deadline, now)),
        ("generation", record.generation or None),
    ]


def _keys(record: JobRecord) -> list[tuple[str, object]]:
    names = ("unique", "ordered", "concurrency", "tenant", "guard", "correlation_id", "causation_id", "trace")
    return [
        ("priority", record.priority or None),
        *((name.replace("_id", ""), getattr(record, name)) for name in names),
    ]


def show_audit(entries: Sequence[AuditEntry], now: float) -> None:
    columns = [Column("at"), Column("actor"), Column("action"), Column("before"), Column("after")]
    rows = [
        [cell(each.at, now), each.actor, each.action, _text(each.before), _text(each.after)]
        for each in entries
    ]
    show_table(columns, rows, nothing="")


def _text(side: str | None) -> str | None:
    found = _side(side)
    return found if found is None or isinstance(found, str) else json.dumps(found, ensure_ascii=False)
