"""What things are called in a trace: the messaging conventions of OpenTelemetry 1.44, and our own names beside them."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

SCHEMA = "https://opentelemetry.io/schemas/1.44.0"

SYSTEM = "messaging.system"
OPERATION, OPERATION_TYPE = "messaging.operation.name", "messaging.operation.type"
DESTINATION = "messaging.destination.name"
GROUP = "messaging.consumer.group.name"
MESSAGE, CONVERSATION = "messaging.message.id", "messaging.message.conversation_id"
COUNT = "messaging.batch.message_count"
ERROR_TYPE = "error.type"
EXCEPTION = "exception"  # the name of the event that tells of one
EXCEPTION_TYPE, EXCEPTION_MESSAGE = "exception.type", "exception.message"
EXCEPTION_TRACE = "exception.stacktrace"

STORY = "holdfast.correlation_id"
JOB, TASK, QUEUE = "holdfast.job.id", "holdfast.task", "holdfast.queue"
ATTEMPT, INTERRUPTIONS = "holdfast.job.attempt", "holdfast.job.interruptions"
OUTCOME = "holdfast.job.outcome"
STEP, STEP_KIND = "holdfast.step.name", "holdfast.step.kind"
GUARD = "holdfast.guard.name"
BROKER = "holdfast.broker"

Attributes: TypeAlias = dict[str, str | bool | int | float]


class _Told(msgspec.Struct):
    id: str
    type: str


class _Delivery(msgspec.Struct):
    event: _Told


_delivery = msgspec.json.Decoder(_Delivery)


def messaging(operation: str, kind: str) -> Attributes:
    return {SYSTEM: "holdfast", OPERATION: operation, OPERATION_TYPE: kind}


def of_claim(claim: Any) -> tuple[str, Attributes]:
    """The name of a run's span, and what it says."""
    told = messaging("process", "process")
    told[JOB], told[TASK], told[QUEUE] = claim.job_id, claim.task, claim.queue
    told[ATTEMPT], told[STORY] = claim.attempt, claim.correlation_id or claim.job_id
    told[CONVERSATION] = told[STORY]
    if claim.interruptions:
        told[INTERRUPTIONS] = claim.interruptions
    if claim.task.startswith("on:") and (event := _event(claim.args)) is not None:
        told[DESTINATION], told[MESSAGE], told[GROUP] = event.type, event.id, _group(claim.task)
        return f"process {event.type}", told
    told[DESTINATION], told[MESSAGE] = claim.queue, claim.job_id
    return f"process {claim.task}", told


def _group(task: str) -> str:
    """Of a handler's task, on:{group}:{handler}."""
    return str(task[len("on:") :].rpartition(":")[0]) or str(task[len("on:") :])


def _event(args: str) -> _Told | None:
    try:
        return _delivery.decode(args).event
    except (msgspec.MsgspecError, UnicodeError):  # a job that only looks like a delivery
        return None
