"""`hf.on_dead`, `hf.on_unknown`, `hf.on_cancelled`: functions that write in the transaction of that end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from holdfast.jobs.end_handlers import AnyOnEnd
from holdfast.jobs.registry import Registry
from holdfast.jobs.task import Task
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.runtime.inside import Inside
from holdfast.sagas.saga import Saga
from holdfast.store.states import State

H = TypeVar("H", bound=AnyOnEnd)
Ending: TypeAlias = str | Task[Any, Any] | Saga | Callable[..., Any]


class DeclaringEnds:
    """The part of `Holdfast` that is about ends of jobs.

    What a handler is for: a task, its name, or the function that `@hf.task` or `@hf.on` stands on. Handlers are functions
    `(job, tx)`; a plain one runs in a thread, with a `tx` as `hf.blocking.transaction()` gives it. `job.reason` says why it has ended so,
    and `job.arguments` and `job.event` what it was about.
    """

    _inside: Inside

    def on_dead(self, task: Ending, /) -> Callable[[H], H]:
        """Call this, `(job, tx)`, in the transaction that makes a job of the task dead."""
        return self._on_end(State.DEAD, task)

    def on_unknown(self, task: Ending, /) -> Callable[[H], H]:
        """Call this, `(job, tx)`, in the transaction that makes a job of the task unknown: a person must say what became of it."""
        return self._on_end(State.UNKNOWN, task)

    def on_cancelled(self, task: Ending, /) -> Callable[[H], H]:
        """Call this, `(job, tx)`, in the transaction that cancels a job of the task, whoever does: also when it has expired."""
        return self._on_end(State.CANCELLED, task)

    def _on_end(self, state: State, task: Ending) -> Callable[[H], H]:
        names = _names_of(task, self._inside.registry, f"@hf.on_{state}")

        def declared(handler: H) -> H:
            for name in names:
                self._inside.registry.add_on_end(state, name, handler)
            return handler

        return declared


def _names_of(task: Ending, registry: Registry, where: str) -> list[str]:
    if isinstance(task, str):
        return [task]
    if isinstance(task, Task | Saga):
        return [task.name if isinstance(task, Task) else task.task.name]
    if not (names := registry.made_of(task)):
        raise UsageError(
            f"{where}({show(task)}): that is no task of this Holdfast, nor the function of one. Declare it first, with @hf.task or "
            "@hf.on, or say the name of its task."
        )
    return names
