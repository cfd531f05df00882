"""What a program says and does about events: declares their types, hears them, emits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, overload

from holdfast.events.catalog import EventType
from holdfast.events.emitting import Item
from holdfast.events.subscribers import Terms
from holdfast.guards.backoff import Backoff
from holdfast.guards.guard import Guard
from holdfast.kernel.awaits import Args, first_text, must_await
from holdfast.runtime.inside import Inside
from holdfast.store.event_records import Emitted

D = TypeVar("D")
H = TypeVar("H", bound=Callable[..., Any])


def _event(args: Args) -> str | None:
    return getattr(args[1], "name", None) or first_text(args) if len(args) > 1 else None


class Eventing:
    """The part of `Holdfast` that is about events."""

    _inside: Inside

    @overload
    def event(self, name: str, data: type[D], *, unheard: bool = False) -> EventType[D]: ...
    @overload
    def event(self, name: str, data: Any = Any, *, unheard: bool = False) -> EventType[Any]: ...
    def event(self, name: str, data: Any = Any, *, unheard: bool = False) -> EventType[Any]:
        """Declare a type of event, with the type of its data: `placed = hf.event("order.placed", Order)`.

        What is emitted is checked against it. A worker does not start when nobody in the program hears a declared type, unless it
        is declared with `unheard=True`: another program hears it, or nobody needs to.
        """
        return self._inside.bus.catalog.declare(name, data, unheard=unheard)

    def on(
        self,
        *patterns: str,
        group: str,
        name: str | None = None,
        aliases: Sequence[str] = (),
        queue: str = "default",
        retry: Backoff | None = None,
        timeout: float | None = None,
        priority: int = 0,
        ordered: bool = True,
        concurrency: int | None = None,
        guard: Guard[Any] | None = None,
        from_start: bool = False,
    ) -> Callable[[H], H]:
        """Hear events: `@hf.on("order.*", group="billing")` on a function `(event)` or `(event, tx)`, async or not.

        `*` is one word of a type's name, `**` at the end any that follow. Each group gets each event once, as a job of the task
        `on:billing:name`: what the function writes through `tx` commits together with the fact that the group has handled the event.
        Without `tx` it may run more than once. An event parameter typed `Event[Order]` has its data in that type.
        Events of one key are handled one after the other, unless `ordered=False`; `concurrency` is how many
        of the group run at a time. A new group hears what is published from now on, or with `from_start` all that is kept.
        """
        terms = Terms(
            name=name,
            aliases=aliases,
            queue=queue,
            retry=retry,
            timeout=timeout,
            priority=priority,
            ordered=ordered,
            concurrency=concurrency,
            guard=guard,
            from_start=from_start,
        )

        def declared(function: H) -> H:
            self._inside.bus.on(function, patterns, group, terms)
            return function

        return declared

    @overload
    async def emit(
        self,
        type_: EventType[D],
        data: D,
        *,
        key: str | None = None,
        tx: Any = None,
        expect: int | None = None,
    ) -> Emitted: ...
    @overload
    async def emit(
        self,
        type_: str,
        data: Any = None,
        *,
        key: str | None = None,
        tx: Any = None,
        expect: int | None = None,
    ) -> Emitted: ...
    @must_await("hf.emit", name=_event)
    async def emit(
        self,
        type_: Any,
        data: Any = None,
        *,
        key: str | None = None,
        tx: Any = None,
        expect: int | None = None,
    ) -> Emitted:
        """Store an event: `await hf.emit("order.placed", order, key="order:1", tx=tx)`. It exists if and only if `tx` commits.

        `key` names what it is about. Events of one key have versions 1, 2, 3 … and are published in that order; until `tx` ends, other
        emits of the same key wait. Without `tx` it is stored when this returns. `expect` is the version that the key has now, as
        the caller has seen it: when it has another, VersionConflict is raised and nothing is stored.
        """
        return await self._inside.bus.emitter.emit(type_, data, key=key, tx=tx, expect=expect)

    @must_await("hf.emit_many", name=lambda _: None)
    async def emit_many(self, events: Iterable[Item], *, tx: Any = None) -> list[Emitted]:
        """Store many events, all or none, in one statement: `await hf.emit_many([(placed, order, "order:1"), …], tx=tx)`.

        Each is (type, data) or (type, data, key), as for `emit`. Those of one key have their versions in the order of the list;
        the keys may stand in any order. The answers are in that of the list.
        """
        return await self._inside.bus.emitter.emit_many(events, tx=tx)

    def emit_many_sync(self, events: Iterable[Item], *, tx: Any = None) -> list[Emitted]:
        """`emit_many` for code without an event loop; an error on a running one."""
        return self._inside.bus.emitter.emit_many_sync(events, tx=tx)

    def emit_sync(
        self,
        type_: EventType[Any] | str,
        data: Any = None,
        *,
        key: str | None = None,
        tx: Any = None,
        expect: int | None = None,
    ) -> Emitted:
        """`emit` for code without an event loop; an error on a running one."""
        return self._inside.bus.emitter.emit_sync(type_, data, key=key, tx=tx, expect=expect)
