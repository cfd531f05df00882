"""Whether two guards, or parts of guards, were made with the same options: a module that is loaded again makes each once more."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.kernel.options import Named
from holdfast.kernel.show import show

_MISSING = object()


class Kept(Named):
    """The metaclass of what is made with options and keeps them, as `settings`."""

    if not TYPE_CHECKING:  # it changes no types

        def __call__(self, *args: Any, **options: Any) -> Any:
            made = super().__call__(*args, **options)
            bound = inspect.signature(self.__init__).bind(made, *args, **options)
            bound.apply_defaults()
            made.settings = dict(list(bound.arguments.items())[1:])
            return made


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """The options that differ, with their values: `timeout (5 and 10)`."""
    found = []
    for name in first:
        one, other = first[name], second.get(name, _MISSING)
        if _plain(one) != _plain(other):
            found.append(f"{name} ({_said(one)} and {_said(other)})")
    return found


def _said(value: Any) -> str:
    if (settings := getattr(value, "settings", None)) is not None:
        given = ", ".join(f"{name}={_said(each)}" for name, each in settings.items() if each is not None)
        return f"{type(value).__name__}({given})"
    return getattr(value, "__qualname__", None) or show(value)


def _plain(value: Any) -> Any:
    """The same for what was made of the same text: no object of a program is equal to the one of its module loaded again."""
    if isinstance(settings := getattr(value, "settings", None), dict):
        return type(value).__name__, _plain(settings)
    match value:
        case msgspec.Struct():
            found = [_plain(getattr(value, name)) for name in value.__struct_fields__]
            return type(value).__name__, found
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case set() | frozenset():
            return sorted(map(str, value))
    return _plain_function(value) if callable(value) else value


def _plain_function(function: Callable[..., Any]) -> Any:
    if isinstance(function, type):
        return function.__module__, function.__qualname__
    if isinstance(function, partial):
        return _plain([function.func, function.args, function.keywords])
    if isinstance(function, MethodType):
        return _plain(function.__func__), id(function.__self__)
    if not isinstance(function, FunctionType):
        return function
    if "<" not in function.__qualname__:  # the one of that name
        return function.__module__, function.__qualname__
    inside = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    return function.__module__, function.__qualname__, _plain_code(function.__code__), _plain(inside)


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _plain_code(code: CodeType) -> Any:
    """Without its lines: text above it may have changed."""
    constants = [_plain_code(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return code.co_code, code.co_names, constants
