"""Calling the function of a step or an effect: async, or plain in a thread, within its time, as often as it may."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, get_type_hints
from weakref import WeakKeyDictionary

from holdfast.jobs.backoff import Backoff
from holdfast.kernel.clock import sleep, timeout
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.names import check_seconds
from holdfast.kernel.show import show
from holdfast.kernel.threads import call_stoppable

ONCE = Backoff(attempts=1)
_types: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # by function: what it says that it returns
Plain = Callable[
    [Callable[[], Any]], Awaitable[Any]
]  # how a plain function is called without blocking the loop


class Call:
    """One function with its arguments. Keyword arguments come by `functools.partial`."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        *,
        retry: Backoff | None,
        limit: float | None,
        plain: Plain = call_stoppable,
    ) -> None:
        if not callable(function):
            raise UsageError(f"A step is a function and its arguments; {show(function)} is no function.")
        if retry is not None and not isinstance(retry, Backoff):
            raise UsageError(f"retry is a Backoff, such as Backoff(attempts=3); not {show(retry)}.")
        self._function, self._args, self._plain = function, tuple(args), plain
        self.retry = retry or ONCE
        self._limit = None if limit is None else check_seconds("timeout", limit, minimum=0.001)

    async def once(self) -> Any:
        if self._limit is None:
            return await self._call()
        try:
            async with timeout(self._limit) as clock:
                return await self._call()
        except TimeoutError as error:
            if clock.expired():
                raise TimeoutError(f"it took longer than its timeout of {self._limit:g} s") from error
            raise

    async def run(self) -> Any:
        """As often as it may fail."""
        attempt = 1
        while True:
            try:
                return await self.once()
            except Exception as error:
                if not self.retry.allows(attempt, error):
                    raise
            await sleep(self.retry.delay(attempt))
            attempt += 1

    async def _call(self) -> Any:
        return await self.beside(self._function)

    async def beside(self, function: Callable[..., Any]) -> Any:
        """Another function with the same arguments."""
        if inspect.iscoroutinefunction(_inner(function)):
            return await function(*self._args)
        result = await self._plain(partial(function, *self._args))
        return await result if inspect.isawaitable(result) else result

    def decoded(self, text: str | None) -> Any:
        """A recorded result, in the type that the function says it returns."""
        if text is None:
            return None
        try:
            return decode_stored(text, _returns(self._function))
        except (PayloadError, UsageError):  # not what its annotation says: as it is
            return decode_stored(text)

    def fingerprint(self) -> str:
        """Of what it is called with, as far as that can be written down: else of its type."""
        given = [*_bound(self._function), *self._args]
        return hashlib.sha256("\n".join(_written(each) for each in given).encode()).hexdigest()[:32]


def _inner(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function


def _bound(function: Any) -> list[Any]:
    if not isinstance(function, partial):
        return []
    return [*_bound(function.func), *function.args, *sorted(function.keywords.items())]


def _returns(function: Any) -> Any:
    inner = _inner(function)
    inner = getattr(inner, "__func__", inner)  # a bound method is another object at every look
    try:
        if inner not in _types:
            _types[inner] = get_type_hints(inner, include_extras=True).get("return", Any)
        return _types[inner]
    except (TypeError, NameError):  # an object without annotations, or with such as cannot be read
        return Any


def _written(value: Any) -> str:
    try:
        return encode(value)
    except PayloadError:
        return type(value).__qualname__
