"""Run one job in a process of its own: what crashes or hangs there takes nobody with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.guards.deadline import time_left
from holdfast.guards.faults import Fault
from holdfast.guards.guard import Guard
from holdfast.jobs.control import Cancel, Reject, Retry, Snooze
from holdfast.jobs.declaration import import_of
from holdfast.jobs.frames import Answer, Request
from holdfast.jobs.lending import Lending
from holdfast.jobs.task import Task
from holdfast.kernel.context import context
from holdfast.kernel.errors import BreakerOpen, BulkheadFull, DeadlinePassed, RateLimited, Refused
from holdfast.kernel.processes import talk_to_child

_COMMAND = (sys.executable, "-m", "holdfast.jobs.child_main")


_REFUSALS = {
    kind.__name__: kind for kind in (Refused, BreakerOpen, RateLimited, BulkheadFull, DeadlinePassed)
}


class ChildFailed(Exception):
    """The task failed in its process; the message is what it said there, and the fault what its guard made of it."""

    def __init__(self, text: str, fault: Fault | None = None, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.fault, self.retry_after = fault, retry_after


class ChildDied(Exception):
    """The process ended without an answer: killed, out of memory, or a crash in C code."""


async def run_in_child(task: Task[Any, Any], args: str, guards: Mapping[str, Guard[Any]]) -> str | None:
    """The task's result as JSON text. When this is cancelled, or we end, the process is killed, and what it has started."""
    module, folder = import_of(task.function)
    lending = Lending(guards)
    request = Request(
        path=[part for part in (*sys.path, folder) if part],
        module=module,
        task=task.name,
        args=args,
        context=context(),
        left=time_left(),
        guards=lending.names,
    )
    said = msgspec.json.encode(request) + b"\n"
    try:
        code, line = await talk_to_child([*_COMMAND, str(os.getpid())], said, lending.hear)
    finally:
        lending.close()
    if not line.endswith(b"\n"):
        raise ChildDied(
            f"its process ended with {'signal' if code < 0 else 'exit code'} {abs(code)} and no answer"
        )
    answer = msgspec.json.decode(line, type=Answer)
    if answer.kind != "done":
        raise _error(answer)
    return answer.result


def _error(answer: Answer) -> Exception:
    """What was raised there."""
    match answer.kind:
        case "retry" | "snooze":
            return (Retry if answer.kind == "retry" else Snooze)(answer.after or 0.0, answer.text)
        case "cancel":
            return Cancel(answer.text)
        case "reject" | "never":
            return Reject(answer.text)
        case "refused":
            return _REFUSALS[answer.refusal](answer.text, retry_after=answer.after)
        case "group":
            return ExceptionGroup(answer.text, [_error(part) for part in answer.parts])
        case _:
            return ChildFailed(answer.text, answer.fault, answer.after)
