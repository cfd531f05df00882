"""Arguments that no annotation gives a type: what would come back from JSON as something else is refused, and not changed in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, get_args, get_origin

from holdfast.kernel.errors import PayloadError

_AS_THEY_ARE = frozenset({str, int, float, bool, NoneType})
_HOLDERS = (dict, list, Mapping, Sequence)


class Untyped:
    """The arguments of one signature of which the whole, or what they hold, has no type."""

    def __init__(self, where: str, hints: Mapping[str, Any]) -> None:
        self._where = where
        self._whole = [name for name, hint in hints.items() if _is_open(hint)]
        self._held = [name for name, hint in hints.items() if _holds_open(hint)]

    def check(self, arguments: Mapping[str, Any]) -> None:
        """After they were written: so they have an end."""
        for name in self._whole:
            if name in arguments and (found := _changed(arguments[name])) is not None:
                raise self._refusal(name, found)
        for name in self._held:
            if name in arguments and (found := _changed_in(arguments[name])) is not None:
                raise self._refusal(name, found)

    def _refusal(self, name: str, found: type) -> PayloadError:
        return PayloadError(
            f"{self._where}: argument {name} has a value of type {found.__name__}, and no annotation says so: it would come back as something else. "
            f"Annotate the parameter with its whole type, such as `{name}: {_example(found)}`, or pass what JSON has."
        )


def _is_open(hint: Any) -> bool:
    return hint is Any or hint is object


def _holds_open(hint: Any) -> bool:
    if hint in _HOLDERS:
        return True
    args = get_args(hint)
    return get_origin(hint) in _HOLDERS and bool(args) and (_is_open(args[-1]) or _holds_open(args[-1]))


def _changed(value: Any) -> type | None:
    """The first type in it that JSON does not have. Keys are texts, or were refused before."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return None
    if kind is list or kind is dict:
        return _changed_in(value)
    return kind


def _changed_in(value: Any) -> type | None:
    if isinstance(value, dict):
        return _first(value.values())
    return _first(value) if isinstance(value, list | tuple) else None


def _first(values: Any) -> type | None:
    return next((found for each in values if (found := _changed(each)) is not None), None)


def _example(kind: type) -> str:
    return f"{kind.__name__}[str, ...]" if kind is tuple else kind.__name__
