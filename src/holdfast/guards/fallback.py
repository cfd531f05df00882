"""The fallback: what to answer when there is no answer. The result says that it is degraded."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.guards.faults import Fault
from holdfast.guards.settings import Kept
from holdfast.kernel.errors import Refused, UsageError
from holdfast.kernel.show import show

F = TypeVar("F")
FALLS = (
    Fault.TRANSIENT,
    Fault.THROTTLED,
    Fault.UNKNOWN,
)  # a permanent fault is an answer, or a mistake of ours


class Degraded(msgspec.Struct, Generic[F], frozen=True):
    """An answer that was made up instead of the real one. It is never equal to a real one: take `value` knowingly."""

    value: F
    error: Exception  # why

    @property
    def degraded(self) -> bool:
        return True


class Fallback(Generic[F], metaclass=Kept):
    """Calls `function(error)`, or `function()`, when a call was refused or failed with one of the faults in `on`."""

    __slots__ = ("_function", "_on", "_wants_error", "settings")

    def __init__(
        self, function: Callable[..., F] | Callable[..., Awaitable[F]], *, on: Collection[Fault] = FALLS
    ) -> None:
        if not callable(function):
            raise UsageError(
                f"fallback is a function of the error, such as `lambda error: []`; not {show(function)}."
            )
        self._function: Callable[..., Any] = function
        self._wants_error = _wants_error(function)
        try:
            self._on = frozenset(Fault(each) for each in on)
        except (TypeError, ValueError):
            raise UsageError(f"on is a set of faults ({', '.join(Fault)}); not {show(on)}.") from None

    def takes(self, error: Exception, fault: Fault) -> bool:
        """Whether it stands in for this error."""
        return isinstance(error, Refused) or fault in self._on

    async def result(self, error: Exception) -> Degraded[F]:
        found = self._function(error) if self._wants_error else self._function()
        return Degraded(await found if inspect.isawaitable(found) else found, error)


def _wants_error(function: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions in C do not tell
        return True
    for given in ((None,), ()):
        try:
            signature.bind(*given)
        except TypeError:
            continue
        return bool(given)
    raise UsageError(f"fallback takes the error, or nothing; {show(function)} wants {signature}.")
