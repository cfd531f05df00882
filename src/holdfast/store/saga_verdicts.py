"""What is said and decided about sagas, in the same words on every store."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.store.event_records import OutboxEvent
from holdfast.store.records import AuditEntry
from holdfast.store.saga_records import OVER, STUCK, SagaAnswer, SagaState
from holdfast.store.steps import OPEN, Progress

UNDO = "undo/"  # what the step is called that undoes another
WAIT = "wait/"  # what the steps are called that only wait
SHOWN = 20  # characters of a result that say whether it is that of a saga that was undone
_RESULT_SHOWN = 1000  # characters of a result that a person gave
_TOLD = ("id", "type", "key", "version", "time", "correlation_id", "causation_id", "trace")
TIMED_OUT = '{"timed_out":true}'


def came(value: str) -> str:
    """The result of a step that has waited."""
    return f'{{"value":{value}}}'


def event_came(event: OutboxEvent) -> str:
    """The result of a step that has waited for an event."""
    told = {name: getattr(event, name) for name in _TOLD} | {"data": msgspec.Raw(event.data.encode())}
    return msgspec.json.encode({"value": told, "position": event.position}).decode()


def ended(state: str, result: str | None, error: str | None, *, undone: bool = False) -> str | None:
    """The result of a step that has waited for another saga, or for it to be undone; None: it waits on."""
    if state not in OVER or (undone and state != SagaState.UNDONE):
        return None
    told = msgspec.json.encode({"state": state, "error": error}).decode()
    return f'{told[:-1]},"value":{result or "null"}}}'


def lost(state: str, reason: str | None) -> str:
    """Why a saga is parked whose job will not run again."""
    return f"The job that carries it is {state}: {reason}"


def refuse_cancel(job_id: str, saga_id: str) -> UsageError:
    """Without its job a saga would neither go on nor be undone, and nobody would be told."""
    return UsageError(
        f"Job {job_id} carries the saga {saga_id!r}, which would be left half done. Have the saga undone: "
        f"`holdfast sagas cancel {shlex.quote(saga_id)}`."
    )


def refuse_move(job_id: str, saga_id: str) -> UsageError:
    """Its time is that of what the saga waits for."""
    return UsageError(
        f"Job {job_id} carries the saga {saga_id!r}, which decides itself when it goes on; nothing was moved. See "
        f"`holdfast sagas show {shlex.quote(saga_id)}`."
    )


def refuse_discard(job_id: str, saga_id: str) -> UsageError:
    return UsageError(
        f"Job {job_id} carries the saga {saga_id!r}, which would be left half done; nothing was discarded. See "
        f"`holdfast sagas show {shlex.quote(saga_id)}`."
    )


def may_cancel(
    saga_id: str, state: SagaState, *, undoing: bool, pivot: str | None, done_too: bool
) -> SagaAnswer | None:
    """Why not; None: it may be."""
    if state is SagaState.UNDONE or (state is SagaState.DONE and not done_too):
        return SagaAnswer(saga_id, "over", state)
    if undoing:
        return SagaAnswer(saga_id, "undoing", state)
    return None if pivot is None else SagaAnswer(saga_id, "too_late", state)


def may_go_on(saga_id: str, state: SagaState) -> SagaAnswer | None:
    """Why a person cannot let it go on; None: it may."""
    if state in STUCK:
        return None
    return SagaAnswer(saga_id, "over" if state in OVER else "not_stuck", state)


def to_decide(steps: Iterable[tuple[str, str, str | None]], *, no_way_back: bool) -> tuple[str, ...]:
    """Of the names, progress and results of all steps: those that a person can decide about.

    What nobody knows the end of, and undos that have failed; when there is no way back, also sagas that were undone. What
    is only waited for still comes.
    """
    return tuple(
        name
        for name, progress, result in steps
        if (progress in OPEN and not name.startswith(WAIT))
        or (name.startswith(UNDO) and progress == Progress.FAILED)
        or (no_way_back and _was_undone(name, progress, result))
    )


def _was_undone(name: str, progress: str, result: str | None) -> bool:
    return (
        name.startswith(WAIT) and progress == Progress.DONE and (result or "").startswith('{"state":"undone"')
    )


def as_decided(name: str, result: str | None) -> str | None:
    """The result that a person gives a step which was done."""
    return ended(SagaState.DONE, result, None) if name.startswith(WAIT) else result


def anew(*, undoing: bool) -> SagaState:
    return SagaState.COMPENSATING if undoing else SagaState.RUNNING


def cancelled(saga_id: str, state: SagaState, *, actor: str, reason: str) -> AuditEntry:
    return _entry("saga.cancel", saga_id, actor, state, {"reason": reason})


def retried(saga_id: str, state: SagaState, *, actor: str) -> AuditEntry:
    return _entry("saga.retry", saga_id, actor, state, {})


def settled(
    saga_id: str, state: SagaState, step: str, *, done: bool, result: str | None, actor: str
) -> AuditEntry:
    after: dict[str, Any] = {"step": step, "decision": "done" if done else "not done"}
    if result is not None:
        after["result"] = result[:_RESULT_SHOWN]
    return _entry("saga.settle", saga_id, actor, state, after)


def _entry(action: str, saga_id: str, actor: str, state: SagaState, after: dict[str, Any]) -> AuditEntry:
    return AuditEntry(
        actor=actor,
        action=action,
        subject=f"saga:{saga_id}",
        before=msgspec.json.encode({"state": state}).decode(),
        after=msgspec.json.encode(after).decode(),
    )
