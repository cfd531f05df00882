"""How a step is undone, as it is stored with the step's intent: names of functions, and arguments as JSON."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import msgspec

from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.show import show
from holdfast.store.steps import PLAN_LIMIT

Function = Callable[..., Any]


class Undo:
    """`undo=Undo(cancel, order_id)`: how a step is undone, with arguments that are known before its call.

    They are stored with the step's intent. The function may be called although the step was never done, and more than
    once: it says nothing when there is nothing to undo.
    """

    __slots__ = ("args", "function")

    def __init__(self, function: Function, /, *args: Any) -> None:
        if not callable(function):
            raise UsageError(f"Undo takes a function and its arguments; {show(function)} is no function.")
        self.function, self.args = function, args

    def __repr__(self) -> str:
        return f"<Undo by {getattr(self.function, '__qualname__', self.function)!r}>"


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a later process needs to know of a step: to undo it, or of what it waits for."""

    undo: str | None = None  # the name of the function; None: there is nothing to undo
    args: str | None = None  # its arguments, a JSON list; None: it is given the step's result
    does: str | None = (
        None  # the name of the step's own function, when it has one: for the type of the result
    )
    pivot: bool = False  # once it is done, there is no way back
    reconcile: str | None = None  # the name of the function that looks whether it was done
    call: str | None = None  # what that is given: the arguments of the step
    settle: float = 60.0  # seconds after its call during which what is not found may still appear
    child: str | None = None  # the id of the saga that the step has started
    doubted: bool = False  # it has failed, and nobody knows whether it was done
    about: tuple[str, str | None] | None = None  # the type of the event that it waits for, and the key

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def read(text: str | None) -> Plan:
    return Plan() if text is None else msgspec.json.decode(text, type=Plan)


def arguments(args: Sequence[Any], where: str) -> str:
    """As JSON text; raises with the name of the step when they have no form there."""
    try:
        return encode(list(args), limit=PLAN_LIMIT // 2, where=where)
    except PayloadError as error:
        raise UsageError(f"{error} They are stored, for a later process that has to undo the step.") from None


def restored(function: Function, text: str) -> list[Any]:
    """Stored arguments, each in the type that the function says it takes."""
    values = msgspec.json.decode(text, type=list[msgspec.Raw])
    kinds = _kinds(function)
    return [
        fitted(bytes(value), kinds[place] if place < len(kinds) else Any)
        for place, value in enumerate(values)
    ]


def fitted(text: str | bytes, kind: Any) -> Any:
    """As the type, when it fits; else as it is."""
    try:
        return decode_stored(text, kind)
    except (PayloadError, UsageError):
        return decode_stored(text)


def given(function: Function, does: Function | None, result: str | None) -> Any:
    """The result of a step for the function that undoes it: in the type that this takes, else that the step returns."""
    if result is None:
        return None
    kinds = _kinds(function)
    kind = kinds[0] if kinds else Any
    if kind is Any and does is not None:
        kind = _hints(does).get("return", Any)
    return fitted(result, kind)


def _kinds(function: Function) -> list[Any]:
    """Of its parameters by place."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
    hints = _hints(function)
    return [hints.get(name, Any) for name in names]


def _hints(function: Function) -> dict[str, Any]:
    inner = inspect.unwrap(getattr(function, "__func__", function))
    try:
        return get_type_hints(inner, include_extras=True)
    except (TypeError, NameError):
        return {}
