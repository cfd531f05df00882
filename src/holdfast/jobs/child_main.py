"""The program of a task's own process: read one request, call the function, write one answer, leave."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import msgspec

from holdfast.guards.deadline import deadline
from holdfast.guards.faults import fault_of, retry_after_of
from holdfast.guards.guard import Guard
from holdfast.jobs.borrowing import borrow
from holdfast.jobs.control import Cancel, Reject, Retry, Snooze
from holdfast.jobs.failures import describe
from holdfast.jobs.frames import Answer, Request
from holdfast.jobs.lending import kind_of
from holdfast.jobs.registry import Registry
from holdfast.jobs.task import Task
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.context import become
from holdfast.kernel.errors import PayloadError, Refused, UsageError
from holdfast.kernel.masking import secret_values
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.kernel.processes import Line, die_with_parent


def main() -> int:
    [parent] = sys.argv[1:]
    die_with_parent(int(parent), signal.SIGKILL)
    line = Line()
    request = msgspec.json.decode(line.read(), type=Request)
    become(request.context)
    answer = _answer(request, line)
    line.say(msgspec.json.encode(answer))
    return 0


def _answer(request: Request, line: Line) -> Answer:
    task: Task[Any, Any] | None = None
    try:
        sys.path[:] = request.path
        module = importlib.import_module(request.module)
        task = find_task(module, request.task)
        borrow(_guards(module, task), request.guards, line)
        result = _called(task, request.args, request.left)
    except Retry as retry:
        return Answer(kind="retry", after=retry.outcome.after, text=str(retry))
    except Snooze as snooze:
        return Answer(kind="snooze", after=snooze.outcome.after, text=str(snooze))
    except Cancel as cancel:
        return Answer(kind="cancel", text=str(cancel))
    except Reject as reject:
        return Answer(kind="reject", text=str(reject))
    except BaseException as error:  # noqa: BLE001  whatever it is, the worker is told; stderr might show a secret
        return _failed(task, error, secret_values(request.args))
    return _done(task, result)


def _failed(task: Task[Any, Any] | None, error: BaseException, secrets: Iterable[str]) -> Answer:
    text = describe(error, secrets)
    if task is None or not isinstance(error, Exception):
        return Answer(kind="failed", text=text)
    if isinstance(error, Refused):
        return Answer(kind="refused", text=text, after=error.retry_after, refusal=kind_of(error))
    if isinstance(error, task.declaration.retry.never):
        return Answer(kind="never", text=text)
    guard = task.declaration.guard
    fault = None if guard is None else fault_of(error, guard.classify)
    return Answer(kind="failed", text=text, fault=fault, after=retry_after_of(error))


def _guards(module: ModuleType, task: Task[Any, Any]) -> list[Guard[Any]]:
    """Those of the program. One that is declared elsewhere, and stands before no task, is the process's own."""
    found = {id(guard): guard for registry in _registries(module) for guard in registry.known_guards.values()}
    if (own := task.declaration.guard) is not None:
        found[id(own)] = own
    return list(found.values())


def find_task(module: ModuleType, name: str) -> Task[Any, Any]:
    """The task that is declared there. Its function may have another name there, or stand there undecorated."""
    for value in [*vars(module).values()]:
        if isinstance(value, Task) and value.name == name:
            return value
        if (registry := _registry(value)) is not None and (found := registry.get(name)) is not None:
            return found
    raise Reject(
        f"Its own process imported {module.__name__!r} and found no task {name!r} there. "
        "With process=True, declare a task in the module of its function, whenever that is imported."
    )


def _registries(module: ModuleType) -> list[Registry]:
    return [registry for value in vars(module).values() if (registry := _registry(value)) is not None]


def _registry(value: object) -> Registry | None:
    """That of a Holdfast."""
    found = value if isinstance(value, Registry) else _attribute(value, "registry")
    return found if isinstance(found, Registry) else None


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


def _called(task: Task[Any, Any], args: str, left: float | None) -> Any:
    positional, named = task.signature.arrange(task.signature.decode(args))
    with deadline(left):
        if task.is_async:
            return asyncio.run(task.function(*positional, **named))
        return task.function(*positional, **named)


if __name__ == "__main__":
    sys.exit(main())
