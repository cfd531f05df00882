"""Options by their names: one that there is not is refused with the nearest one, and with all that there are."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.kernel.errors import UsageError


def check_options(owner: str, given: Iterable[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise UsageError(
                f"There is no option {name!r} for {owner}.{nearest(name, known)} There are: {', '.join(known)}."
            )


def nearest(name: str, known: Collection[str]) -> str:
    """A sentence for who has mistyped it; nothing when none is alike."""
    found = get_close_matches(name, known, n=1)
    return f" Did you mean {found[0]!r}?" if found else ""


def options_of(function: Any) -> list[str]:
    """What may be given to it by name."""
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in inspect.signature(function).parameters.values() if each.kind in kinds]


class Named(type):
    """The metaclass of a class that people make with options."""

    if not TYPE_CHECKING:  # it changes no types

        def __call__(cls, *args: Any, **options: Any) -> Any:
            try:
                return super().__call__(*args, **options)
            except TypeError:
                check_options(cls.__name__, options, options_of(cls.__init__)[1:])
                raise


class _NamedStruct(msgspec.StructMeta):
    if not TYPE_CHECKING:

        def __call__(self, *args: Any, **options: Any) -> Any:
            try:
                return super().__call__(*args, **options)
            except TypeError:
                check_options(self.__name__, options, self.__struct_fields__)
                raise


class NamedStruct(msgspec.Struct, frozen=True, metaclass=_NamedStruct):
    """A record of options that people make."""
