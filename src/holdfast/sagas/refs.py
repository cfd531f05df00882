"""Names of functions, by which a later process finds them again: an undo is stored long before it is called."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from holdfast.jobs.declaration import module_of
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note

Function = Callable[..., Any]
_REGISTERED, _SEEN = "@", "."  # how a name begins; any other is `module:path`


class Refs:
    """The functions that one program has given a name of their own."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def add(self, name: str, function: Function) -> None:
        check_name("undo", name)
        there = self._functions.get(name)
        if there is not None and _home(there) != _home(function):
            raise UsageError(
                f"Two functions are registered as {name!r}: {show(there)} and {show(function)}. Rename one."
            )
        self._functions[name] = function

    def name(self, function: Function, seen_from: Function, what: str) -> str:
        """By which `find` will find it. `seen_from` is the function of the saga: what that can name is found by that.

        Raises UsageError when no later process could.
        """
        for found in self._candidates(function, seen_from):
            if self.find(found, seen_from) == function:
                return found
        raise UsageError(
            f"{what} {show(function)} cannot be found again by a later process: it is made while the saga runs. Give a function of a "
            "module, with its arguments: Undo(cancel_order, order_id). Or name it: hf.undo('shop.cancel', function)."
        )

    def _candidates(self, function: Function, seen_from: Function) -> Iterator[str]:
        yield from (f"{_REGISTERED}{name}" for name, each in self._functions.items() if each == function)
        path = getattr(function, "__qualname__", "")
        if path and "<" not in path and getattr(function, "__module__", None):
            yield f"{module_of(function)}:{path}"
        yield from (f"{_SEEN}{path}" for path in _paths(function, _seen(seen_from)))

    def find(self, name: str, seen_from: Function) -> Function | None:
        """None: the code that is here does not have it."""
        found: Any
        if name.startswith(_REGISTERED):
            return self._functions.get(name[1:])
        if name.startswith(_SEEN):
            first, *rest = name[1:].split(".")
            found = _seen(seen_from).get(first)
        else:
            module, _, path = name.partition(":")
            found, rest = _module(module), path.split(".")
        for part in rest:
            found = getattr(found, part, None)
        return found if callable(found) else None


def _home(function: Function) -> tuple[Any, Any]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", function)


def _seen(function: Function) -> Mapping[str, Any]:
    """What the names in a function mean: its module's, and those of the functions around it."""
    inner = inspect.unwrap(function)
    names: dict[str, Any] = dict(getattr(inner, "__globals__", {}))
    code, cells = getattr(inner, "__code__", None), getattr(inner, "__closure__", None)
    if code is not None and cells is not None:
        for name, cell in zip(code.co_freevars, cells, strict=True):
            try:
                names[name] = cell.cell_contents
            except ValueError:  # not bound yet
                continue
    return names


def _paths(function: Function, names: Mapping[str, Any]) -> Iterator[str]:
    """How these names lead to it: by itself, as an attribute, or as a method of what a module has."""
    attribute = getattr(function, "__name__", None)
    owner = getattr(function, "__self__", None)
    for name, value in names.items():
        if value is function:
            yield name
        elif attribute is not None and _has(value, attribute, function):
            yield f"{name}.{attribute}"
        elif owner is not None and isinstance(value, ModuleType):
            yield from (f"{name}.{each}.{attribute}" for each, held in vars(value).items() if held is owner)


def _has(value: Any, attribute: str, function: Function) -> bool:
    """Only where looking has no consequence: an object may answer to any name."""
    if isinstance(value, ModuleType):
        return bool(vars(value).get(attribute) is function)
    if isinstance(value, type):
        return attribute in vars(value) and getattr(value, attribute, None) == function
    return getattr(function, "__self__", None) is value


def _module(name: str) -> ModuleType | None:
    if (found := sys.modules.get(name)) is not None:
        return found
    main = sys.modules.get("__main__")
    if main is not None and module_of(_InMain) == name:
        return main
    try:
        return import_module(name)
    except ImportError:
        return None
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever its code does when it is imported here
        note("saga.module_broken", module=name, error=repr(error))
        return None


class _InMain:
    """Stands for a function of the program that was started."""


_InMain.__module__ = "__main__"
