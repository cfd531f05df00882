"""The program of a task's own process: read one request, call the function, write one answer, leave."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from typing import Any

import msgspec

from holdfast.jobs.control import Cancel, Reject, Retry, Snooze
from holdfast.jobs.failures import describe
from holdfast.jobs.frames import Answer, Request
from holdfast.jobs.task import Task
from holdfast.kernel.codec import encode
from holdfast.kernel.masking import secret_values
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.kernel.processes import die_with_parent


def main() -> int:
    die_with_parent(os.getppid())
    answers = os.dup(1)
    os.dup2(2, 1)  # what the task prints goes where errors go: the answers have this pipe for themselves
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    answer = _answer(request)
    with open(answers, "wb") as pipe:  # noqa: PTH123  it is a number, not a path
        pipe.write(msgspec.json.encode(answer))
    return 0


def _answer(request: Request) -> Answer:
    task: Task[Any, Any] | None = None
    try:
        sys.path[:] = request.path
        task = getattr(importlib.import_module(request.module), request.name)
        assert isinstance(task, Task)
        result = _called(task, request.args)
        text = None if result is None else encode(result, limit=RESULT_LIMIT, where="result")
    except Retry as retry:
        return Answer(kind="retry", after=retry.outcome.after, text=str(retry))
    except Snooze as snooze:
        return Answer(kind="snooze", after=snooze.outcome.after, text=str(snooze))
    except Cancel as cancel:
        return Answer(kind="cancel", text=str(cancel))
    except Reject as reject:
        return Answer(kind="reject", text=str(reject))
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever it is, the worker is told
        never = task is not None and isinstance(error, task.declaration.retry.never)
        return Answer(kind="never" if never else "failed", text=describe(error, secret_values(request.args)))
    return Answer(kind="done", result=text)


def _called(task: Task[Any, Any], args: str) -> Any:
    positional, named = task.signature.arrange(task.signature.decode(args))
    if task.is_async:
        return asyncio.run(task.function(*positional, **named))
    return task.function(*positional, **named)


if __name__ == "__main__":
    sys.exit(main())
