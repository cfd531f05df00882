"""The program of a task's own process: read one request, call the function, write one answer, leave."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
from types import ModuleType
from typing import Any

import msgspec

from holdfast.jobs.control import Cancel, Reject, Retry, Snooze
from holdfast.jobs.failures import describe
from holdfast.jobs.frames import Answer, Request
from holdfast.jobs.registry import Registry
from holdfast.jobs.task import Task
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.context import become
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.masking import secret_values
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.kernel.processes import die_with_parent, own_answers


def main() -> int:
    [parent] = sys.argv[1:]
    die_with_parent(int(parent), signal.SIGKILL)
    answers = own_answers()
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    become(request.context)
    answer = _answer(request)
    with open(answers, "wb", closefd=False) as pipe:
        pipe.write(msgspec.json.encode(answer) + b"\n")
    return 0


def _answer(request: Request) -> Answer:
    task: Task[Any, Any] | None = None
    try:
        sys.path[:] = request.path
        task = find_task(importlib.import_module(request.module), request.task)
        result = _called(task, request.args)
    except Retry as retry:
        return Answer(kind="retry", after=retry.outcome.after, text=str(retry))
    except Snooze as snooze:
        return Answer(kind="snooze", after=snooze.outcome.after, text=str(snooze))
    except Cancel as cancel:
        return Answer(kind="cancel", text=str(cancel))
    except Reject as reject:
        return Answer(kind="reject", text=str(reject))
    except BaseException as error:  # noqa: BLE001  whatever it is, the worker is told; stderr might show a secret
        never = task is not None and isinstance(error, task.declaration.retry.never)
        return Answer(kind="never" if never else "failed", text=describe(error, secret_values(request.args)))
    return _done(task, result)


def find_task(module: ModuleType, name: str) -> Task[Any, Any]:
    """The task that is declared there. Its function may have another name there, or stand there undecorated."""
    for value in [*vars(module).values()]:
        if isinstance(value, Task) and value.name == name:
            return value
        registry = value if isinstance(value, Registry) else _attribute(value, "registry")
        if isinstance(registry, Registry) and (found := registry.get(name)) is not None:
            return found
    raise Reject(
        f"Its own process imported {module.__name__!r} and found no task {name!r} there. "
        "With process=True, declare a task in the module of its function, whenever that is imported."
    )


def _attribute(value: object, name: str) -> object:
    """Of an object as it is: a module may hold some that compute their attributes, and fail."""
    try:
        found: object = object.__getattribute__(value, "__dict__").get(name)
    except (AttributeError, TypeError):
        return None
    return found


def _done(task: Task[Any, Any], result: Any) -> Answer:
    """A result that cannot be kept is no better the next time."""
    if result is None:
        return Answer(kind="done")
    try:
        text = encode(result, limit=RESULT_LIMIT, where="result")
        decode_stored(text, task.signature.returns)
    except (PayloadError, UsageError) as error:
        return Answer(kind="reject", text=f"The task ran to its end, but its result cannot be kept: {error}")
    return Answer(kind="done", result=text)


def _called(task: Task[Any, Any], args: str) -> Any:
    positional, named = task.signature.arrange(task.signature.decode(args))
    if task.is_async:
        return asyncio.run(task.function(*positional, **named))
    return task.function(*positional, **named)


if __name__ == "__main__":
    sys.exit(main())
