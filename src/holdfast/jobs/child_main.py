"""The program of a task's own process: read one request, call the function, write one answer, leave."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Literal

import msgspec

from holdfast.guards.deadline import deadline
from holdfast.guards.faults import fault_of, retry_after_of
from holdfast.guards.guard import Guard
from holdfast.jobs.borrowing import borrow
from holdfast.jobs.control import Cancel, Reject, Retry, Snooze, meant
from holdfast.jobs.failures import LONGEST, describe
from holdfast.jobs.frames import Answer, Request
from holdfast.jobs.lending import kind_of
from holdfast.jobs.registry import Registry
from holdfast.jobs.task import Task
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.context import become
from holdfast.kernel.errors import PayloadError, Refused, UsageError
from holdfast.kernel.masking import hide, secret_values
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
    except BaseException as error:  # noqa: BLE001  whatever it is, the worker is told; stderr might show a secret
        return _ended(task, meant(error), [*secret_values(request.args)])
    return _done(task, result)


def _ended(task: Task[Any, Any] | None, error: BaseException, secrets: Sequence[str]) -> Answer:
    match error:
        case Retry() | Snooze():
            kind: Literal["retry", "snooze"] = "retry" if isinstance(error, Retry) else "snooze"
            return Answer(kind=kind, after=error.outcome.after, text=str(error))
        case Cancel():
            return Answer(kind="cancel", text=str(error))
        case Reject():
            return Answer(kind="reject", text=str(error))
        case ExceptionGroup() if task is not None:
            parts = _parts(task, error, secrets)
            return Answer(kind="group", text=hide(error.message, secrets)[:LONGEST], parts=[*parts.values()])
        case Exception() if task is not None:
            return _failed(task, error, secrets, never=task.declaration.retry.never)
        case _:
            return Answer(kind="failed", text=describe(error, secrets))


def _failed(
    task: Task[Any, Any], error: Exception, secrets: Sequence[str], never: tuple[type[Exception], ...] = ()
) -> Answer:
    text = describe(error, secrets)
    if isinstance(error, Refused):
        return Answer(kind="refused", text=text, after=error.retry_after, refusal=kind_of(error))
    if isinstance(error, never):
        return Answer(kind="never", text=text)
    guard = task.declaration.guard
    fault = None if guard is None else fault_of(error, guard.classify)
    return Answer(kind="failed", text=text, fault=fault, after=retry_after_of(error))


def _parts(
    task: Task[Any, Any], group: ExceptionGroup[Exception], secrets: Sequence[str]
) -> dict[tuple[str, str, str | None], Answer]:
    """One of each that the worker tells apart, the one that waits for longest: there may be a thousand."""
    found: dict[tuple[str, str, str | None], Answer] = {}
    for error in group.exceptions:
        parts = (
            _parts(task, error, secrets).values()
            if isinstance(error, ExceptionGroup)
            else [_failed(task, error, secrets)]
        )
        for part in parts:
            place = part.kind, part.refusal, part.fault
            if place not in found or (found[place].after or 0.0) < (part.after or 0.0):
                found[place] = part
    return found


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
    found = value if isinstance(value, Registry) else _attribute(_attribute(value, "_inside"), "registry")
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
