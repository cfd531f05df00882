"""Run one job in a process of its own: what crashes or hangs there takes nobody with it."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import msgspec

from holdfast.jobs.control import Cancel, Reject, Retry, Snooze
from holdfast.jobs.declaration import import_of
from holdfast.jobs.frames import Answer, Request
from holdfast.jobs.task import Task
from holdfast.kernel.context import context
from holdfast.kernel.processes import talk_to_child

_COMMAND = (sys.executable, "-m", "holdfast.jobs.child_main")


class ChildFailed(Exception):
    """The task failed in its process; the message is what it said there."""


class ChildDied(Exception):
    """The process ended without an answer: killed, out of memory, or a crash in C code."""


async def run_in_child(task: Task[Any, Any], args: str) -> str | None:
    """The task's result as JSON text. When this is cancelled, or we end, the process is killed, and what it has started."""
    module, folder = import_of(task.function)
    path = [part for part in (*sys.path, folder) if part]
    request = Request(path=path, module=module, task=task.name, args=args, context=context())
    code, said = await talk_to_child([*_COMMAND, str(os.getpid())], msgspec.json.encode(request))
    if not said.endswith(b"\n"):
        raise ChildDied(
            f"its process ended with {'signal' if code < 0 else 'exit code'} {abs(code)} and no answer"
        )
    answer = msgspec.json.decode(said, type=Answer)
    return answer.result if answer.kind == "done" else _raised(answer)


def _raised(answer: Answer) -> NoReturn:
    """What was raised there, here."""
    match answer.kind:
        case "retry":
            raise Retry(answer.after, answer.text)
        case "snooze":
            raise Snooze(answer.after, answer.text)
        case "cancel":
            raise Cancel(answer.text)
        case "reject" | "never":
            raise Reject(answer.text)
        case _:
            raise ChildFailed(answer.text)
