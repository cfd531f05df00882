"""What runs in each process: a worker whose program has sagas, with the relay and the listener beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.events.bus import Bus
from holdfast.events.settings import EventSettings
from holdfast.guards.backoff import Backoff
from holdfast.kernel.service import Service
from holdfast.sagas.running import RunningSaga
from holdfast.sagas.saga import Saga
from holdfast.sagas.sagas import Sagas
from holdfast.store.records import NewJob
from holdfast.testing.simulation.fleet import Fleet, Life
from holdfast.testing.simulation.plan import JobSpec, Op
from holdfast.testing.simulation.sagas.acting import Acting
from holdfast.testing.simulation.sagas.provider import UNDO_TIMEOUT, Provider
from holdfast.testing.simulation.sagas.spec import BRIEF, LEG, TIMEOUT, TRIP, TYPES, UNDO_TRIES, Act
from holdfast.testing.simulation.service.node import Program, leave_service, new_service
from holdfast.testing.simulation.service.tasks import Watch

_OPTIONS: dict[str, dict[str, Any]] = {TRIP: {}, BRIEF: {"timeout": TIMEOUT}, LEG: {}}


class App(Program):
    """A program with sagas, as Holdfast wires it."""

    def __init__(self, life: Life) -> None:
        super().__init__(life)
        self.bus = Bus(self.registry, self.enqueuer, None, EventSettings())
        self.bus.send_to(life.store, self.portal)
        self.sagas = Sagas(self.registry, self.enqueuer)
        self.sagas.keep_in(life.store)
        self._declare(life)
        self.service = new_service(life, self, self._beside)

    def _declare(self, life: Life) -> None:
        for name in TYPES:
            self.bus.catalog.declare(name, Any, unheard=True)
        provider: Provider = life.fleet.provider
        for name, function in (
            ("undo", provider.undo),
            ("take back", provider.take_back),
            ("find", provider.find),
        ):
            self.sagas.refs.add(name, function)
        for name, options in _OPTIONS.items():
            given = {
                "queue": life.fleet.plan.queues[0],
                "undo_retry": Backoff(attempts=UNDO_TRIES, first=0.2, ceiling=2.5),
                "undo_timeout": UNDO_TIMEOUT,
            }
            self.sagas.declare(name, _played(life, self.leg), given | options)
        self.hooks.use(Watch(life))

    def leg(self) -> Saga:
        return self.saga(LEG)

    def saga(self, name: str) -> Saga:
        found = self.sagas.declared(name)
        assert found is not None
        return found

    def _beside(self, owner: str, lease: float) -> list[Service]:
        return [*self.bus.services(owner, lease), *self.sagas.services(owner, lease)]


def _played(life: Life, leg: Callable[[], Saga]) -> Callable[..., Any]:
    async def played(saga: RunningSaga, acts: list[Act]) -> str:
        return await Acting(life, saga, leg).play(acts)

    return played


def beside(fleet: Fleet) -> None:
    fleet.provider = Provider(fleet)


def furnish(life: Life) -> None:
    life.app = App(life)
    life.leave = lambda: leave_service(life.app.service)


def new_job(_life: Life, _op: Op, _place: int, _spec: JobSpec) -> NewJob:
    raise AssertionError("callers of this kind start sagas")


async def serve(life: Life) -> None:
    """The program."""
    if not life.process.draining:
        await life.app.service.start()
