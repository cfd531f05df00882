"""Who hears events: handlers in groups. Each handler is a task, and a delivery is a job of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.events.envelope import Envelope
from holdfast.events.handlers import EitherTx, Handler
from holdfast.events.patterns import pattern
from holdfast.events.routes import Route
from holdfast.guards.backoff import Backoff
from holdfast.guards.guard import Guard
from holdfast.jobs.blocking import Portal
from holdfast.jobs.enqueue import Enqueuer
from holdfast.jobs.job import Job, attempt_of
from holdfast.jobs.registry import Registry
from holdfast.jobs.signature import is_secret
from holdfast.jobs.task import Task
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name
from holdfast.store.ports import Store


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What `@hf.on(…)` says beside the patterns and the group."""

    name: str | None = None
    aliases: Sequence[str] = ()
    queue: str = "default"
    retry: Backoff | None = None
    timeout: float | None = None
    priority: int = 0
    ordered: bool = True
    concurrency: int | None = None
    guard: Guard[Any] | None = None
    from_start: bool = False


class Subscriber(msgspec.Struct, frozen=True):
    group: str
    handler: Handler
    task: Task[Any, Any]
    route: Route
    from_start: bool


class Group:
    """Handlers that share what they hear: each event goes to one of them, once."""

    def __init__(self, name: str) -> None:
        self.name = check_name("group", name)
        self._subscribers: dict[str, Subscriber] = {}  # by task

    def add(self, subscriber: Subscriber) -> None:
        there = self._subscribers.get(subscriber.task.name)
        if there is not None and not _is_reload(there.handler, subscriber.handler):
            raise UsageError(
                f"Two handlers of the group {self.name!r} are called {subscriber.task.name!r}: {there.handler.where} and "
                f"{subscriber.handler.where}. Give one of them another name=."
            )
        others = [each for each in self._subscribers.values() if each is not there]
        for other in others:
            _refuse_overlap(self.name, subscriber, other)
            _refuse_another_limit(self.name, subscriber, other)
        self._subscribers[subscriber.task.name] = subscriber

    @property
    def subscribers(self) -> list[Subscriber]:
        return list(self._subscribers.values())

    @property
    def routes(self) -> list[Route]:
        """With the limit of the group, whichever of its handlers says it: they share the slots."""
        routes = [each.route for each in self._subscribers.values()]
        limit = next((each.concurrency for each in routes if each.concurrency is not None), None)
        return [each if each.concurrency == limit else replace(each, concurrency=limit) for each in routes]

    @property
    def from_start(self) -> bool:
        return any(each.from_start for each in self._subscribers.values())


class Subscribers:
    """All groups of a program."""

    _store: Store
    _portal: Portal

    def __init__(self, registry: Registry, enqueuer: Enqueuer) -> None:
        self._registry, self._enqueuer = registry, enqueuer
        self.groups: dict[str, Group] = {}

    def send_to(self, store: Store, portal: Portal) -> None:
        self._store, self._portal = store, portal

    def add(
        self, function: Callable[..., Any], patterns: Sequence[str], group: str, terms: Terms
    ) -> Subscriber:
        handler = Handler(function)
        name = check_name("group", group)
        if len(name.encode()) > 100:
            raise UsageError(f"The group {name!r} is too long: at most 100 bytes. Shorten it.")
        if name.startswith("holdfast:"):  # such as the one whose members are brokers
            raise UsageError(
                f"The group {name!r}: Holdfast keeps names that begin with 'holdfast:'. Choose another."
            )
        if not patterns:
            raise UsageError('Say what it hears: @hf.on("order.*", group=…).')
        heard = tuple(pattern(each).text for each in patterns)
        if terms.concurrency is not None:
            check_int("concurrency", terms.concurrency, 1, 10_000)
        task = self._registry.add(
            self._made_task(name, handler),
            self._enqueuer,
            {
                "name": terms.name or f"on:{name}:{function.__name__}",
                "aliases": terms.aliases,
                "queue": terms.queue,
                "retry": terms.retry,
                "timeout": terms.timeout,
                "priority": terms.priority,
                "guard": terms.guard,
            },
        )
        route = Route(
            patterns=heard,
            task=task.name,
            queue=task.declaration.queue,
            priority=task.declaration.priority,
            ordered=bool(terms.ordered),
            guard=None if terms.guard is None else terms.guard.name,
            concurrency=terms.concurrency,
            secret=is_secret(handler.data),
        )
        made = Subscriber(name, handler, task, route, bool(terms.from_start))
        self.groups.setdefault(name, Group(name)).add(made)
        return made

    def check_supplied(self) -> None:
        """At the start of a worker: resources may be declared after the handlers that take them."""
        for group in self.groups.values():
            for each in group.subscribers:
                signature = each.task.signature
                strange = [
                    name for name in signature.names if name != "event" and name not in signature.defaults
                ]
                if strange:
                    raise UsageError(
                        f"{each.handler.where} takes {strange[0]!r}, which is neither event, tx, job nor a resource. "
                        "Annotate it: `job: Job`, or with the type that a @hf.resource yields; or leave it out."
                    )

    # --- the task of a handler ---

    def _made_task(self, group: str, handler: Handler) -> Callable[..., Any]:
        """A function that the engine can run: the job and the envelope, and what the worker supplies."""

        async def on_loop(job: Job, event: Envelope, **others: Any) -> None:
            await self._handle(group, handler, job, event, others)

        def in_thread(job: Job, event: Envelope, **others: Any) -> None:
            self._handle_in_thread(group, handler, job, event, others)

        run: Any = on_loop if handler.is_async else in_thread
        function = handler.function
        run.__name__, run.__qualname__ = function.__name__, function.__qualname__
        run.declared = function
        run.shows_event = handler.shown
        run.__module__, run.__doc__ = function.__module__, function.__doc__
        either = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [
            inspect.Parameter("job", either, annotation=Job),
            inspect.Parameter("event", either, annotation=Envelope),
            *handler.others,
        ]
        run.__signature__ = inspect.Signature(parameters)
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        made: Callable[..., Any] = run
        return made

    async def _handle(
        self, group: str, handler: Handler, job: Job, envelope: Envelope, others: Mapping[str, Any]
    ) -> None:
        event, inbox = handler.event(envelope), self._store.inbox
        if not handler.takes_tx:
            await handler.call(event, job, None, others)
            if attempt_of(job).completed:  # in a transaction of its own
                return
        async with job.commit() as tx:
            is_first = await inbox.handled(group, envelope.identity, tx=tx)
            if is_first and handler.takes_tx:
                await handler.call(event, job, tx, others)

    def _handle_in_thread(
        self, group: str, handler: Handler, job: Job, envelope: Envelope, others: Mapping[str, Any]
    ) -> None:
        event, portal, inbox = handler.event(envelope), self._portal, self._store.inbox
        if not handler.takes_tx:
            self._awaited(handler.call(event, job, None, others))
            if attempt_of(job).completed:
                return
        with job.blocking.commit() as tx:
            is_first = portal.run(lambda: inbox.handled(group, envelope.identity, tx=tx.inner))
            if is_first and handler.takes_tx:
                self._awaited(handler.call(event, job, EitherTx(tx.inner, portal), others))

    def _awaited(self, result: Any) -> None:
        """An async function behind a plain decorator: what it gives back is still to be done."""
        if inspect.isawaitable(result):
            self._portal.run(lambda: _await(result))


async def _await(result: Any) -> None:
    await result


def _refuse_overlap(group: str, one: Subscriber, other: Subscriber) -> None:
    for mine in one.route.patterns:
        for theirs in other.route.patterns:
            if pattern(mine).meets(pattern(theirs)):
                raise UsageError(
                    f"In the group {group!r} both {other.handler.where} ({theirs}) and {one.handler.where} ({mine}) would hear "
                    "the same event, and a group handles each once. Narrow a pattern, or use another group."
                )


def _refuse_another_limit(group: str, one: Subscriber, other: Subscriber) -> None:
    mine, theirs = one.route.concurrency, other.route.concurrency
    if mine is not None and theirs is not None and mine != theirs:
        raise UsageError(
            f"The group {group!r} has concurrency={theirs} by {other.handler.where} and concurrency={mine} by "
            f"{one.handler.where}: it is the limit of the whole group. Say one number, or use another group."
        )


def _is_reload(there: Handler, here: Handler) -> bool:
    """The same function again: its module was run as a program and is imported as well."""
    mine, theirs = here.function.__code__, there.function.__code__
    return here.where.rpartition(".")[2] == there.where.rpartition(".")[2] and (
        (mine.co_filename, mine.co_firstlineno) == (theirs.co_filename, theirs.co_firstlineno)
    )
