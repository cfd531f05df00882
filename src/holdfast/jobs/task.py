"""A task: a function that jobs can run. It stays callable as it is; `enqueue` stores a job instead."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import msgspec

from holdfast.jobs.declaration import Declaration
from holdfast.jobs.handle import Handle
from holdfast.jobs.options import NONE, Options, options
from holdfast.jobs.signature import Signature
from holdfast.kernel.awaits import Args, Awaits, around, awaits_of, is_async, must_await
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.store.records import NewJob

P = ParamSpec("P")
R = TypeVar("R")
Result = TypeVar("Result")


class Bound(msgspec.Struct, frozen=True):
    """One call of a task, not enqueued yet: its arguments by name."""

    task: str
    arguments: dict[str, Any]

    def __repr__(self) -> str:
        return f"<Bound call of {self.task} with {', '.join(self.arguments) or 'no arguments'}>"


class Sender(Protocol):
    """What stores jobs; the one object that tasks know of the program they belong to."""

    def build(self, task: Task[Any, Any], arguments: Mapping[str, Any], given: Options) -> NewJob: ...
    def build_many(
        self, task: Task[Any, Any], calls: Sequence[Mapping[str, Any]], given: Options
    ) -> list[NewJob]: ...
    async def send(self, task: Task[Any, R], jobs: list[NewJob], given: Options) -> list[Handle[R]]: ...
    def blocking(
        self, work: Callable[[], Coroutine[Any, Any, Result]], tx: object, instead: str
    ) -> Result: ...


def _call_of(args: Args) -> Call[Any, Any]:
    asked: Call[Any, Any] | Task[Any, Any] = args[0]
    return asked._call if isinstance(asked, Task) else asked  # noqa: SLF001  here and below: of this file


def _name(args: Args) -> str:
    return _call_of(args)._task.name  # noqa: SLF001


def _awaits(args: Args, _: dict[str, Any]) -> Awaits | None:
    return awaits_of(_call_of(args)._given.tx)  # noqa: SLF001


class Call(Generic[P, R]):
    """A task with options for its next enqueue."""

    def __init__(self, task: Task[P, R], given: Options) -> None:
        self._task, self._given = task, given

    def options(self, **changes: Any) -> Call[P, R]:
        """The same with further options: delay, at, expires, priority, queue, unique, ordered, tenant, tx."""
        return Call(self._task, options(self._given, changes))

    @must_await("task.enqueue", name=_name, to=_awaits)
    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Store a job. When this returns, it is stored for good; with `tx`, when that transaction commits."""
        return await self._store(args, kwargs)

    async def _store(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Handle[R]:
        task = self._task
        job = task.sender.build(task, task.signature.bind(args, kwargs), self._given)
        [handle] = await task.sender.send(task, [job], self._given)
        return handle

    @must_await("task.enqueue_many", name=_name, to=_awaits)
    async def enqueue_many(self, calls: Iterable[Mapping[str, Any] | Bound]) -> list[Handle[R]]:
        """Store many jobs, all or none, far faster than one by one."""
        return await self._store_many(calls)

    async def _store_many(self, calls: Iterable[Mapping[str, Any] | Bound]) -> list[Handle[R]]:
        task = self._task
        arguments = [task.arguments_of(call) for call in calls]
        jobs = task.sender.build_many(task, arguments, self._given)
        return await task.sender.send(task, jobs, self._given) if jobs else []

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """`enqueue` for code without an event loop; an error on a running one."""
        return self._blocking("enqueue", lambda: self._store(args, kwargs))

    def enqueue_many_sync(self, calls: Iterable[Mapping[str, Any] | Bound]) -> list[Handle[R]]:
        """`enqueue_many` for code without an event loop; an error on a running one."""
        listed = [*calls]  # in this thread
        return self._blocking("enqueue_many", lambda: self._store_many(listed))

    def _blocking(self, name: str, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        return self._task.sender.blocking(work, self._given.tx, f"`await task.{name}(…)`")


class Task(Generic[P, R]):
    """Made by `@hf.task`."""

    def __init__(
        self, function: Callable[..., Any], declaration: Declaration, signature: Signature, sender: Sender
    ) -> None:
        functools.update_wrapper(self, function)
        self.function, self.declaration, self.signature, self.sender = (
            function,
            declaration,
            signature,
            sender,
        )
        self.is_async = is_async(function)
        # Of a handler of events: the event for who looks at its job, without its data when that is secret.
        self.shows_event: Callable[[Any, bool], Any] | None = getattr(function, "shows_event", None)
        self._call: Call[P, R] = Call(self, NONE)

    @property
    def name(self) -> str:
        return self.declaration.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function here and now: no job, no store."""
        made = self.function(*args, **kwargs)
        if inspect.iscoroutine(made) and (awaits := around()) is not None:
            awaits.add(made, self.function.__name__, self.name)
        return made

    def options(self, **changes: Any) -> Call[P, R]:
        """The task with options for the next enqueue: delay, at, expires, priority, queue, unique, ordered, tenant, tx."""
        return self._call.options(**changes)

    @must_await("task.enqueue", name=_name, to=_awaits)
    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Store a job that runs this task. When this returns, it is stored for good."""
        return await self._call._store(args, kwargs)  # noqa: SLF001

    @must_await("task.enqueue_many", name=_name, to=_awaits)
    async def enqueue_many(self, calls: Iterable[Mapping[str, Any] | Bound]) -> list[Handle[R]]:
        """Store many jobs, all or none: `[{"name": "a"}, greet.bind("b")]`."""
        return await self._call._store_many(calls)  # noqa: SLF001

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """`enqueue` for code without an event loop; an error on a running one."""
        return self._call.enqueue_sync(*args, **kwargs)

    def enqueue_many_sync(self, calls: Iterable[Mapping[str, Any] | Bound]) -> list[Handle[R]]:
        """`enqueue_many` for code without an event loop; an error on a running one."""
        return self._call.enqueue_many_sync(calls)

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound:
        """One call for `enqueue_many`."""
        return Bound(self.name, self.signature.bind(args, kwargs))

    def arguments_of(self, call: Mapping[str, Any] | Bound) -> dict[str, Any]:
        if isinstance(call, Bound):
            if call.task != self.name:
                raise UsageError(
                    f"This is a call of {call.task!r}, bound for another task than {self.name!r}."
                )
            return call.arguments
        if not isinstance(call, Mapping):
            raise UsageError(
                f"enqueue_many takes dicts of arguments and {self.__name__}.bind(…); not {show(call)}."
            )
        return self.signature.bind((), call)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"
