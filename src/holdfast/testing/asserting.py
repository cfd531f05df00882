"""`enqueued` and `assert_enqueued`: what waits in the queues, and an assertion that says what is there instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import msgspec

from holdfast.jobs.signature import Signature
from holdfast.jobs.task import Task
from holdfast.kernel.errors import UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.store.records import JobRecord
from holdfast.store.states import State

_PART = 500
_SHOWN = 10  # jobs in a message


class Waiting(msgspec.Struct, frozen=True):
    """A job that is queued: ready, or held for a while."""

    id: str
    arguments: dict[str, Any]
    record: JobRecord
    secrets: tuple[str, ...] = ()  # arguments that are not shown

    def __str__(self) -> str:
        told = _told(self.arguments, self.secrets) or "no arguments"
        why = "" if self.record.held is None else f", held: {self.record.held}"
        return f"{told} (queue {self.record.queue!r}{why})"


async def enqueued(hf: Holdfast, task: Task[Any, Any] | str) -> list[Waiting]:
    """The queued jobs of a task, in the order in which they were enqueued."""
    known = task if isinstance(task, Task) else inside(hf).registry.task(task)
    names = (known.name, *known.declaration.aliases)
    return [
        Waiting(record.id, known.signature.decode(record.args), record, tuple(known.signature.secrets))
        for record in await waiting(hf)
        if record.task in names
    ]


async def waiting(hf: Holdfast) -> list[JobRecord]:
    """All that is queued, oldest first."""
    found: list[JobRecord] = []
    before = None
    while part := await hf.store.jobs.find(state=State.QUEUED, before=before, limit=_PART):
        found += part
        before = part[-1].id
    return found[::-1]


async def assert_enqueued(
    hf: Holdfast, task: Task[Any, Any] | str, /, count: int | None = 1, **arguments: Any
) -> list[Waiting]:
    """Check that so many jobs of the task are queued with these arguments; others of it may be there as well.

    `count=None`: at least one. What a job has beside the given arguments is not looked at; what it was not given has its
    default. Returns those that fit.
    """
    signature = (task if isinstance(task, Task) else inside(hf).registry.task(task)).signature
    _refuse_strange(signature, arguments)
    there = await enqueued(hf, task)
    fitting = [each for each in there if _fits({**signature.defaults, **each.arguments}, arguments)]
    if len(fitting) == count or (count is None and fitting):
        return fitting
    raise AssertionError(await _message(hf, task, count, arguments, there, len(fitting)))


def _refuse_strange(signature: Signature, arguments: Collection[str]) -> None:
    """No job would ever fit, and `count=0` would hold whatever is queued."""
    for name in arguments:
        if name not in signature.names:
            raise UsageError(
                f"The task has no argument {name!r} to look at. Its arguments: {', '.join(signature.names) or 'none'}."
            )


def _fits(have: dict[str, Any], arguments: dict[str, Any]) -> bool:
    return all(name in have and have[name] == value for name, value in arguments.items())


async def _message(
    hf: Holdfast,
    task: Task[Any, Any] | str,
    count: int | None,
    arguments: dict[str, Any],
    there: list[Waiting],
    fitting: int,
) -> str:
    known = task if isinstance(task, Task) else inside(hf).registry.task(task)
    name, told = known.name, _told(arguments, known.signature.secrets)
    wanted = "at least one job" if count is None else "1 job" if count == 1 else f"{count} jobs"
    lines = [
        f"Expected {wanted} of {name!r}{f' with {told}' if told else ''} to be queued; there are {fitting}."
    ]
    lines += [f"Queued of {name!r}:" if there else f"No job of {name!r} is queued."]
    lines += [f"  {each}" for each in there[:_SHOWN]]
    if len(there) > _SHOWN:
        lines.append(f"  … and {len(there) - _SHOWN} more")
    others = Counter(record.task for record in await waiting(hf) if record.task != name)
    if others:
        lines.append(
            f"Other jobs are queued: {', '.join(f'{number} of {other!r}' for other, number in sorted(others.items()))}."
        )
    return "\n".join(lines)


def _told(arguments: dict[str, Any], secrets: Collection[str]) -> str:
    return ", ".join(
        f"{name}={'***' if name in secrets else repr(value)}" for name, value in arguments.items()
    )
