"""Notices what was asked for and never awaited: a forgotten `await` must not look like work that was done."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from holdfast.kernel.errors import NeverAwaited
from holdfast.kernel.show import show

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])
Args = tuple[Any, ...]
_ROOM = 100  # what may be kept before a look at what has begun meanwhile
_LONGEST = 200  # characters of a name
_TOLD = 5  # of those that were never awaited, so many are named


class Block:
    """What is entered with `with` or `async with`."""

    __slots__ = ("given", "is_entered", "word")

    def __init__(self, word: str, given: str = "tx") -> None:
        self.word, self.given = word, given
        self.is_entered = False


Asked = tuple[Coroutine[Any, Any, Any] | Block, str, str | None]  # what, its verb, and the name that it has


class Awaits:
    """What one run, one step or one transaction has asked for. When that ends, all of it must have begun."""

    __slots__ = ("_asked", "_room")

    def __init__(self) -> None:
        self._asked: list[Asked] = []
        self._room = _ROOM

    def add(self, work: Coroutine[Any, Any, Any] | Block, verb: str, name: str | None) -> None:
        """From any thread."""
        self._asked.append((work, verb, name))
        if len(self._asked) > self._room:
            seen = len(self._asked)
            self._asked[:seen] = [each for each in self._asked[:seen] if _is_untouched(each[0])]
            self._room = 2 * len(self._asked) + _ROOM

    def check(self) -> None:
        """Raise NeverAwaited for what has not begun."""
        if self._asked and (error := self.forgotten()) is not None:
            raise error

    def forgotten(self) -> NeverAwaited | None:
        """The error to raise, when something has not begun. It never will: who awaits it later gets an error."""
        left = [each for each in self._asked if _is_untouched(each[0])]
        self._asked.clear()
        if not left:
            return None
        error = NeverAwaited(_told(left))
        _close(left)
        return error

    def at_end(self, *, well: bool) -> NeverAwaited | None:
        """Of a block: the error with which it is not to succeed."""
        if well:
            return self.forgotten()
        self.drop()
        return None

    def drop(self) -> None:
        """It has failed, and that is said: of what it did not come to await, Python warns, as anywhere else."""
        self._asked.clear()

    def forget(self) -> None:
        """It is no fault that these have not begun: a saga that rests has stopped before it came to them."""
        left, self._asked = self._asked, []
        _close([each for each in left if _is_untouched(each[0])])


def _is_untouched(work: Coroutine[Any, Any, Any] | Block) -> bool:
    if isinstance(work, Block):
        return not work.is_entered
    return inspect.getcoroutinestate(work) == inspect.CORO_CREATED


def _close(left: list[Asked]) -> None:
    """Or Python would say the same once more, on stderr. What belongs to an asyncio task is left to that."""
    begun_soon = _in_tasks()
    for work, _, _ in left:
        if not isinstance(work, Block) and id(work) not in begun_soon:
            work.close()


def _in_tasks() -> set[int]:
    try:
        return {id(task.get_coro()) for task in asyncio.all_tasks()}
    except RuntimeError:  # this thread has no loop
        return set()


def _told(left: list[Asked]) -> str:
    begun_soon = _in_tasks()
    lines = [_line(work, verb, name, begun_soon) for work, verb, name in left[:_TOLD]]
    if len(left) > _TOLD:
        lines.append(f"And {len(left) - _TOLD} more.")
    return " ".join(lines)


def _line(work: Coroutine[Any, Any, Any] | Block, verb: str, name: str | None, begun_soon: set[int]) -> str:
    what = verb if name is None else repr(name) if len(name) <= _LONGEST else show(name)
    if isinstance(work, Block):
        return f"{what} was asked for and never entered: write `{work.word} {verb}(…) as {work.given}:`."
    if id(work) in begun_soon:
        return f"{what} was put into an asyncio task, and nobody awaited that before the end: await the task."
    return f"{what} was asked for and never awaited, so it was not done: write `await {verb}(…)`."


# --- who notices it ---

_around: ContextVar[Awaits | None] = ContextVar("holdfast_awaits", default=None)


def around() -> Awaits | None:
    """That of the run or the step in which this code runs."""
    return _around.get()


def block_around(word: str, given: str, verb: str, name: str) -> Block:
    """A block that the code around must enter: it sets `is_entered`."""
    block = Block(word, given)
    if (awaits := around()) is not None:
        awaits.add(block, verb, name)
    return block


@contextmanager
def watching(awaits: Awaits) -> Generator[None]:
    """What the code in the block asks for is noticed there."""
    mark = _around.set(awaits)
    try:
        yield
    except BaseException:
        awaits.drop()
        raise
    finally:
        _around.reset(mark)


async def to_the_end(work: Awaitable[T]) -> T:
    """Its result. Raises NeverAwaited when it has forgotten an `await`."""
    awaits = Awaits()
    with watching(awaits):
        result = await work
    awaits.check()
    return result


def awaits_of(tx: object) -> Awaits | None:
    """That of a transaction of ours; else that of the code around."""
    found = getattr(tx, "awaits", None) if tx is not None else None
    return found if isinstance(found, Awaits) else _around.get()


def by_context(_: Args, __: dict[str, Any]) -> Awaits | None:
    """For verbs whose named arguments are somebody else's."""
    return _around.get()


def by_tx(_: Args, named: dict[str, Any]) -> Awaits | None:
    return awaits_of(named.get("tx"))


def of_tx(args: Args, _: dict[str, Any]) -> Awaits:
    """For the verbs of a transaction itself."""
    awaits: Awaits = args[0].awaits
    return awaits


def first_text(args: Args) -> str | None:
    """The verb's first argument, behind `self`, when it is a text: the name of a step, a statement."""
    return args[1] if len(args) > 1 and isinstance(args[1], str) else None


def must_await(
    verb: str,
    *,
    name: Callable[[Args], str | None] = first_text,
    to: Callable[[Args, dict[str, Any]], Awaits | None] = by_tx,
) -> Callable[[F], F]:
    """Stands on an async method. Its calls are noticed by `to`; whoever ends first says which were never awaited."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def ask(*args: Any, **named: Any) -> Coroutine[Any, Any, Any]:
            awaits = to(args, named)
            work = function(*args, **named)
            if awaits is not None:
                awaits.add(work, verb, name(args))
            return work

        _mark(ask)
        return cast("F", ask)

    return decorate


C = TypeVar("C", bound=type)


def must_await_all(prefix: str) -> Callable[[C], C]:
    """Stands on a class: all its async methods, of which people may call each."""

    def decorate(kind: C) -> C:
        for name, each in [*vars(kind).items()]:
            if inspect.iscoroutinefunction(each) and not name.startswith("_"):
                setattr(kind, name, must_await(f"{prefix}.{name}", name=lambda _: None)(each))
        return kind

    return decorate


def _mark(function: Any) -> None:
    """It still counts as an async function: here, and for mocks."""
    function.must_await = True
    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(function)
    else:
        function._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]  # noqa: SLF001


def is_async(function: Any) -> bool:
    """Whether a call of it is to be awaited: an `async def`, or one of our verbs."""
    return inspect.iscoroutinefunction(function) or getattr(function, "must_await", False) is True
