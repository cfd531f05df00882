"""The history of one saga: all that is recorded of it, as one story in the order of time, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.jobs.handled import Kept
from holdfast.kernel.masking import hide, masked, secret_values
from holdfast.store.ports import Store
from holdfast.store.records import AuditEntry
from holdfast.store.saga_records import OVER, SagaRecord, SignalRecord
from holdfast.store.saga_verdicts import UNDO, WAIT
from holdfast.store.steps import Kind, Progress, StepRecord

_AUDIT_ROWS = 200
_ENDS = {
    Progress.DONE: "done",
    Progress.RESOLVED: "done, says a person",
    Progress.ASIDE: "left aside",
    Progress.FAILED: "failed",
    Progress.HANDLED: "failed, and the saga went on",
    Progress.UNKNOWN: "nobody knows its end",
    Progress.SOUGHT: "was looked for, and not found yet",
}


class Entry(msgspec.Struct, frozen=True):
    """One thing that happened."""

    at: float
    what: str  # started, step, wait, undo, signal, decided, person, or the state that it has come to
    name: str | None = None  # of the step or signal; who, of a person
    told: str | None = None


class History(msgspec.Struct, frozen=True, kw_only=True):
    """All that is recorded of a saga; nothing of what is secret."""

    saga: SagaRecord
    args: Any
    steps: list[StepRecord]
    signals: list[SignalRecord]
    audit: list[AuditEntry]
    timeline: list[Entry]

    def as_json(self) -> dict[str, Any]:
        """For programs, and for `holdfast.testing.replay`."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        for step in found["steps"]:
            step["result"], step["plan"] = _read(step["result"]), _read(step["plan"])
            del step["fingerprint"], step["now"]
        for signal in found["signals"]:
            signal["value"] = _read(signal["value"])
        found["saga"]["result"] = _read(found["saga"]["result"])
        for entry in found["audit"]:
            entry["before"], entry["after"] = _read(entry["before"]), _read(entry["after"])
        return found


async def history(store: Store, saga_id: str) -> History | None:
    """None: there is no such saga, or not any more."""
    record = await store.sagas.get(saga_id)
    if record is None:
        return None
    job = await store.jobs.get(record.job_id)
    secrets = [] if job is None else secret_values(job.args)
    steps = [] if job is None else await store.steps.load(job.id, job.generation)
    steps = [_without_secrets(each, secrets) for each in steps]
    signals = await store.sagas.signals(saga_id)
    audit = await store.audit.find(subject=f"saga:{saga_id}", limit=_AUDIT_ROWS)
    return History(
        saga=record, args=None if job is None else masked(job.args), steps=steps, signals=signals, audit=audit[::-1],
        timeline=timeline(record, steps, signals, audit),
    )  # fmt: skip


def timeline(
    record: SagaRecord,
    steps: Iterable[StepRecord],
    signals: Iterable[SignalRecord],
    audit: Iterable[AuditEntry],
) -> list[Entry]:
    found = [Entry(record.started_at, "started", record.name)]
    for step in steps:
        found += _of_step(step)
    found += [Entry(each.at, "signal", each.name, each.value) for each in signals]
    found += [Entry(each.at or 0.0, "person", each.actor, _decision(each)) for each in audit]
    if record.decided_at is not None:
        found.append(Entry(record.decided_at, "decided", None, f"to undo it: {_first_line(record.cause)}"))
    if record.state in OVER:
        found.append(Entry(record.finished_at or record.at, str(record.state), None, record.result))
    else:
        found.append(Entry(record.at, str(record.state), None, record.waits or _first_line(record.error)))
    return sorted(found, key=_place)


def _place(entry: Entry) -> tuple[float, int]:
    """What is written in one commit: a step before the decision that it led to, and the end last."""
    order = {"started": 0, "signal": 1, "step": 2, "wait": 2, "decided": 3, "undo": 4, "person": 5}
    return entry.at, order.get(entry.what, 6)


def _of_step(step: StepRecord) -> Iterator[Entry]:
    what, name = "step", step.name
    if name.startswith(UNDO):
        what, name = "undo", name.removeprefix(UNDO)
    elif name.startswith(WAIT):
        what, name = "wait", name.removeprefix(WAIT)
    if step.kind is not Kind.STEP:
        yield Entry(step.first_at, what, name, "begun")
    if step.progress is not Progress.BEGUN:
        yield Entry(step.at, what, name, _told(step))
    elif step.error is not None:
        yield Entry(step.at, what, name, f"failed: {_first_line(step.error)}{_tries(step)}")


def _told(step: StepRecord) -> str:
    end = _ENDS[step.progress]
    if step.progress is Progress.HANDLED:
        failure = msgspec.json.decode(step.result or "{}", type=Kept)
        return f"{end}: {failure.kind}: {failure.message}"
    if step.progress in (Progress.DONE, Progress.RESOLVED):
        tried = f" (after {step.tries} failed {'try' if step.tries == 1 else 'tries'})" if step.tries else ""
        return f"{end}{tried}" if step.result is None else f"{end}{tried}: {step.result}"
    return end if step.error is None else f"{end}: {_first_line(step.error)}{_tries(step)}"


def _tries(step: StepRecord) -> str:
    return f" (tried {step.tries} times)" if step.tries > 1 else ""


def _decision(entry: AuditEntry) -> str:
    found = _read(entry.after)
    details = (
        ", ".join(f"{name}: {value}" for name, value in found.items()) if isinstance(found, dict) else ""
    )
    return f"{entry.action} ({details})" if details else entry.action


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


def _without_secrets(step: StepRecord, secrets: list[str]) -> StepRecord:
    if not secrets:
        return step
    hidden = {
        name: hide(value, secrets)
        for name in ("result", "plan", "error")
        if (value := getattr(step, name)) is not None
    }
    return msgspec.structs.replace(step, **hidden)


def _read(text: str | None) -> Any:
    """JSON where it is JSON: a mask may have made other text of it."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
