"""Calling the function of a step or an effect: async, or plain in a thread, within its time, as often as it may."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, get_type_hints
from weakref import WeakKeyDictionary

from holdfast.guards.backoff import Backoff
from holdfast.jobs.control import Control
from holdfast.jobs.doors import Door, Passed
from holdfast.kernel.awaits import Awaits, is_async, watching
from holdfast.kernel.clock import monotonic, sleep, timeout
from holdfast.kernel.codec import canonical, decode_stored
from holdfast.kernel.errors import DeadlinePassed, PayloadError, Refused, TimedOut, UsageError
from holdfast.kernel.names import check_seconds
from holdfast.kernel.show import show
from holdfast.kernel.threads import Caller, LoopThreads
from holdfast.kernel.tracing import carried

ONCE = Backoff(attempts=1)
_types: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # by function: what it says that it returns
_ON_LOOP = LoopThreads()
_inside: ContextVar[bool] = ContextVar("holdfast_inside_a_step", default=False)


def refuse_inside(name: str) -> None:
    """A step is one thing that is done or not: of those inside it, a later attempt would find some and not others."""
    if _inside.get():
        raise UsageError(
            f"Step {name!r} is asked for inside the function of another step. Ask for both in the task, one after the other."
        )


@contextmanager
def _marked(awaits: Awaits) -> Generator[None]:
    mark = _inside.set(True)
    try:
        with watching(awaits):
            yield
    finally:
        _inside.reset(mark)


class Call:
    """One function with its arguments. Keyword arguments come by `functools.partial`."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        *,
        retry: Backoff | None,
        limit: float | None,
        threads: Caller | None = None,
        door: Door | None = None,
    ) -> None:
        if not callable(function):
            raise UsageError(
                f"A step is a function and its arguments; {show(function)} is no function.{_advice(function)}"
            )
        if retry is not None and not isinstance(retry, Backoff):
            raise UsageError(f"retry is a Backoff, such as Backoff(attempts=3); not {show(retry)}.")
        self._function, self._args, self._threads = function, tuple(args), threads or _ON_LOOP
        self._has_place = False
        self.door = door  # asked before each call
        self._passed: Passed | None = None  # it, and the call is not made yet
        self.turned_away: Refused | None = None  # by it: no call was made
        self.calls = 0  # that were made, and nobody has counted yet
        self.began: float | None = None  # on the monotonic clock: when the last of them did
        self.cut_off: TimeoutError | None = None  # how its last call ended, when that took too long
        self.retry = retry or ONCE
        self._limit = None if limit is None else check_seconds("timeout", limit, minimum=0.001)

    async def prepare(
        self, begin: Callable[[], Awaitable[None]] | None = None, *, once: bool = False
    ) -> None:
        """Do what comes right before the call: not before there is a thread for it, if it needs one, and its guard lets it through.

        `once`: its guard does not repeat it.
        """
        await self._take_place(self._function)
        try:
            await self._ask(once=once)
            if begin is not None:
                await begin()
        except BaseException:
            self._turn_back()
            self._leave_place()
            raise

    async def _ask(self, *, once: bool) -> None:
        if self.door is not None:
            try:
                self._passed = await self.door.ask(once=once)
            except Refused as refusal:
                self.turned_away = refusal
                raise

    def _turn_back(self) -> None:
        passed, self._passed = self._passed, None
        if passed is not None:
            passed.not_made()

    async def once(self) -> Any:
        """Call it through what it has passed, if there is something to pass."""
        passed, self._passed = self._passed, None
        if passed is None:
            return await self._counted()
        made: list[bool] = []
        try:
            return await passed.run(partial(self._counted, made))
        except Exception as error:
            if not made and isinstance(error, Refused):
                self.turned_away = error
            elif isinstance(error, TimedOut):
                self.cut_off = error
            assert self.door is not None
            self.door.failed(error)
            raise

    async def _counted(self, made: list[bool] | None = None) -> Any:
        """Call it, and count that, unless a guard inside has refused: then nothing was called."""
        if made is not None:
            made.append(True)
        before = self.calls, self.began
        self.calls, self.began = self.calls + 1, monotonic()
        try:
            return await self.beside(self._function)
        except Refused as error:
            if was_not_made(error):
                self.calls, self.began = before
            raise

    async def beside(self, function: Callable[..., Any]) -> Any:
        """A function with these arguments. Its time begins when there is a thread for it."""
        await self._take_place(function)
        try:
            return await self._within_limit(function)
        finally:
            self._leave_place()

    async def _within_limit(self, function: Callable[..., Any]) -> Any:
        if self._limit is None:
            return await self._call(function)
        try:
            async with timeout(self._limit) as clock:
                return await self._call(function)
        except TimeoutError as error:
            if not clock.expired():
                raise
            self.cut_off = TimeoutError(f"it took longer than its timeout of {self._limit:g} s")
            raise self.cut_off from error

    async def run(self) -> Any:
        """As often as it may fail. Who is turned away after a failure has failed: a call was made."""
        attempt, failure = 1, None
        while True:
            try:
                if self.door is not None:
                    await self.prepare()
                return await self.once()
            except Exception as error:
                if error is self.turned_away and failure is not None:
                    raise failure from error
                if self._is_over(error, attempt):
                    raise
                failure = error
            await sleep(self.retry.delay(attempt))
            attempt += 1

    def _is_over(self, error: Exception, attempt: int) -> bool:
        return (
            error is self.turned_away or isinstance(error, Control) or not self.retry.allows(attempt, error)
        )

    async def _call(self, function: Callable[..., Any]) -> Any:
        """What it has asked for and not awaited is a failure of it: else that would be recorded as done."""
        awaits = Awaits()
        if _is_async(function):
            with _marked(awaits):
                result = await function(*self._args)
        else:
            result = await self._threads.call(carried(partial(_called, function, self._args, awaits)))
            self._leave_place()
            if inspect.isawaitable(result):
                with _marked(awaits):
                    result = await result
        awaits.check()
        return result

    async def _take_place(self, function: Callable[..., Any]) -> None:
        if not self._has_place and not _is_async(function):
            await self._threads.acquire()
            self._has_place = True

    def _leave_place(self) -> None:
        if self._has_place:
            self._has_place = False
            self._threads.release()

    def decoded(self, text: str | None) -> Any:
        """A recorded result, in the type that the function says it returns."""
        if text is None:
            return None
        try:
            return decode_stored(text, _returns(self._function))
        except (PayloadError, UsageError):  # not what its annotation says: as it is
            return decode_stored(text)

    def fitting(self, text: str | None) -> Any:
        """The same for a result that someone else gives. Raises PayloadError unless it is of that type."""
        given = "null" if text is None else text
        try:
            return decode_stored(given, _returns(self._function))
        except PayloadError:
            raise
        except UsageError:  # a type that nothing in JSON becomes
            return decode_stored(given)

    def fingerprint(self) -> str:
        """Of what it is called with, as far as that can be written down: else of its type."""
        given = [*_bound(self._function), *self._args]
        return hashlib.sha256("\n".join(_written(each) for each in given).encode()).hexdigest()[:32]


def was_not_made(error: BaseException) -> bool:
    """Whether a call that ended so did not take place. A deadline may end one in the middle of it."""
    return isinstance(error, Refused) and not isinstance(error, DeadlinePassed)


def _called(function: Callable[..., Any], args: Sequence[Any], awaits: Awaits) -> Any:
    """On whichever thread it is."""
    with _marked(awaits):
        return function(*args)


def _advice(value: Any) -> str:
    """For who has called the function already."""
    if not inspect.iscoroutine(value):
        return ""
    value.close()
    return f" It was called already: give the function itself, as in step(name, {value.__name__}, …)."


def _inner(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function


def _is_async(function: Any) -> bool:
    return is_async(_inner(function))


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
        return canonical(value)
    except PayloadError:
        return type(value).__qualname__
