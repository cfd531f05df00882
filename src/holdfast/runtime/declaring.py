"""What a program declares: guards, tasks, schedules, resources, middleware."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Never, ParamSpec, Protocol, TypeVar, Unpack, overload

from holdfast.guards.fallback import Degraded, Fallback
from holdfast.guards.guard import Guard
from holdfast.guards.guard import Options as GuardOptions
from holdfast.jobs.cron import Cron
from holdfast.jobs.hooks import Middleware
from holdfast.jobs.job import Job
from holdfast.jobs.resources import Factory
from holdfast.jobs.schedule import Interval, Missed, Schedule
from holdfast.jobs.task import Task
from holdfast.runtime.inside import Inside

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")


class Declare(Protocol):
    """A decorator that makes a function a task; the job that a first parameter takes is no argument of `enqueue`."""

    @overload
    def __call__(self, function: Callable[Concatenate[Job, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


class Declaring:
    """The part of `Holdfast` that stands at the top of modules."""

    _inside: Inside

    @overload
    def guard(
        self, name: str, /, *, fallback: None = None, **options: Unpack[GuardOptions]
    ) -> Guard[Never]: ...
    @overload
    def guard(
        self, name: str, /, *, fallback: Fallback[F] | Callable[..., F], **options: Unpack[GuardOptions]
    ) -> Guard[Degraded[F]]: ...
    def guard(self, name: str, /, **options: Any) -> Any:
        """A guard around the calls to one service, shared by the fleet: `stripe = hf.guard("stripe", timeout=5, …)`.

        Options: timeout, deadline, retry, budget, breaker, limiter, bulkhead, fallback, classify, repeatable, uncharged. Its
        limiter's rate and its breaker's state are those of all processes on this database; without it each goes on by itself.
        Declared twice with the same options it is the same guard; with others it is refused.
        """
        guard: Guard[Any] = Guard(name, **options)
        if (known := self._inside.fleet.known(guard)) is not None:
            return known
        self._inside.fleet.add(guard)
        self._inside.registry.add_guard(guard)
        return guard

    @overload
    def task(self, function: Callable[Concatenate[Job, P], Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, /, **options: Any) -> Declare: ...
    def task(self, function: Any = None, /, **options: Any) -> Any:
        """Make a function a task: `@hf.task`, or `@hf.task(queue="mail", retry=Backoff(attempts=8), timeout=30)`.

        Options: name, aliases, queue, retry, timeout, priority, expires, max_waiting, process, guard, rate (runs a second, or (template, number)),
        and the templates lock, unique, ordered, tenant and concurrency=(template, limit), rendered from the arguments. The function stays callable as it is.
        """
        if function is None:
            return lambda function: self._inside.registry.add(function, self._inside.enqueuer, options)
        return self._inside.registry.add(function, self._inside.enqueuer, options)

    def cron(
        self,
        expression: str,
        *,
        tz: str = "UTC",
        missed: Missed = "latest",
        schedule: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Declare:
        """Enqueue the task at these times: one job for each nominal time, however many schedulers run.

        On a task it adds a schedule, so one task may have several: each has its name, `schedule`, and its `arguments`.
        """
        declare: Declare = self._scheduled(Cron(expression, tz=tz), missed, schedule, arguments, options)
        return declare

    def every(
        self,
        seconds: float,
        *,
        missed: Missed = "latest",
        schedule: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Declare:
        """Enqueue the task every so many seconds; the rest as for `cron`."""
        declare: Declare = self._scheduled(Interval(seconds), missed, schedule, arguments, options)
        return declare

    def _scheduled(
        self,
        times: Cron | Interval,
        missed: Missed,
        name: str | None,
        arguments: Mapping[str, Any] | None,
        options: dict[str, Any],
    ) -> Any:
        def declared(function: Any) -> Task[Any, Any]:
            is_task = isinstance(function, Task) and not options
            task = (
                function if is_task else self._inside.registry.add(function, self._inside.enqueuer, options)
            )
            made = Schedule(task, times, name=name or task.name, missed=missed, arguments=arguments)
            self._inside.registry.add_schedule(made)
            return task

        return declared

    def resource(self, factory: Factory) -> Factory:
        """A generator that opens a resource, yields it and closes it: tasks get it by the type it yields."""
        return self._inside.registry.add_resource(factory)

    def use(self, middleware: Middleware) -> None:
        """Add code around every run, and hooks for what happens to jobs."""
        self._inside.hooks.use(middleware)
