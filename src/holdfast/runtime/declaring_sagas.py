"""`hf.saga`: declare functions that can undo themselves, and name what undoes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from holdfast.events.subscribers import Terms
from holdfast.runtime.inside import Inside
from holdfast.sagas.choreography import GROUP, Choreography
from holdfast.sagas.saga import Saga
from holdfast.sagas.sagas import Sagas

F = TypeVar("F", bound=Callable[..., Any])


class DeclaringSagas:
    """The part of `Holdfast` that is about sagas."""

    sagas: Sagas
    _inside: Inside

    def saga(self, name: str, /, **options: Any) -> Callable[[Callable[..., Any]], Saga]:
        """Make an `async def (saga, …)` a saga: `@hf.saga("battle.create")`; start it with `.start(…, id=…)`.

        Options: queue, priority, aliases, timeout, undo_retry, undo_timeout, and hears: types of events that it waits for, when its
        own code does not name them.
        """

        def declared(function: Callable[..., Any]) -> Saga:
            saga = self.sagas.declare(name, function, options)
            for each in saga.hears():
                self._inside.bus.catalog.hear(f"saga:{saga.name} {each}", each)
            return saga

        return declared

    def choreography(
        self,
        name: str,
        /,
        *,
        begins: str,
        ends: Sequence[str],
        undone_by: Sequence[str] = (),
        steps: Sequence[str] = (),
        within: float = 3600.0,
        queue: str = "default",
    ) -> None:
        """Watch handlers that answer each other's events as one saga: `hf.choreography("battle.create", begins="battle.requested", …)`.

        Each story, by the correlation id of its events, is a saga of this name: it is done by one of `ends`, undone by one of
        `undone_by`, and needs a person when it has heard nothing for `within` seconds. `steps` are events in between, which its
        history tells. It only watches: what undoes, are the handlers of `undone_by`.
        """
        watched = Choreography(
            name, begins=begins, ends=ends, undone_by=undone_by, steps=steps, within=within
        )
        hear = self.sagas.watch(watched)
        self._inside.bus.on(
            hear, watched.hears, GROUP.format(name), Terms(name=GROUP.format(name), queue=queue)
        )

    def undo(self, name: str, function: F) -> F:
        """Give a function a name by which undos are stored, so that it can be moved, or made while the program runs."""
        self.sagas.refs.add(name, function)
        return function
