"""`hf.saga`: declare functions that can undo themselves, and name what undoes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.sagas.saga import Saga
from holdfast.sagas.sagas import Sagas

F = TypeVar("F", bound=Callable[..., Any])


class DeclaringSagas:
    """The part of `Holdfast` that is about sagas."""

    sagas: Sagas

    def saga(self, name: str, /, **options: Any) -> Callable[[Callable[..., Any]], Saga]:
        """Make an `async def (saga, …)` a saga: `@hf.saga("battle.create")`; start it with `.start(…, id=…)`.

        Options: queue, priority, aliases, timeout, undo_retry and undo_timeout.
        """
        return lambda function: self.sagas.declare(name, function, options)

    def undo(self, name: str, function: F) -> F:
        """Give a function a name by which undos are stored, so that it can be moved, or made while the program runs."""
        self.sagas.refs.add(name, function)
        return function
