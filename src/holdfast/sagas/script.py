"""The code of one saga: its function, its options, and how the functions that it names are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.sagas.declaration import SagaOptions
from holdfast.sagas.refs import Refs


class Script:
    def __init__(self, function: Callable[..., Any], options: SagaOptions, refs: Refs) -> None:
        self.function, self.options, self._refs = function, options, refs

    def name_of(self, function: Callable[..., Any], what: str) -> str:
        """By which a later process finds it; raises UsageError when none could. `what` is told of then."""
        return self._refs.name(function, self.function, what)

    def find(self, name: str | None) -> Callable[..., Any] | None:
        """None: the code that is here does not have it."""
        return None if name is None else self._refs.find(name, self.function)
