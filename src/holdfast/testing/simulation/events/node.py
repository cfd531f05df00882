"""What runs in each process: a worker whose program emits and hears events, with relay, consumers and views beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.events.bus import Bus
from holdfast.events.redriving import redrive
from holdfast.events.settings import EventSettings
from holdfast.events.subscribers import Terms
from holdfast.events.wire import Wire
from holdfast.guards.backoff import Backoff
from holdfast.kernel.clock import sleep
from holdfast.kernel.randomness import jittered, random
from holdfast.kernel.service import Service
from holdfast.store.event_records import Emitted
from holdfast.store.records import NewJob
from holdfast.store.states import State
from holdfast.testing.simulation.events.broker import OTHERS, SimulatedBroker
from holdfast.testing.simulation.events.caching import Caching, Origin
from holdfast.testing.simulation.events.handling import handler
from holdfast.testing.simulation.events.link import Link
from holdfast.testing.simulation.events.spec import BILLED, TYPES, GroupSpec, Stream
from holdfast.testing.simulation.events.troubles import TROUBLE
from holdfast.testing.simulation.events.viewing import Viewing
from holdfast.testing.simulation.fleet import Fleet, Life
from holdfast.testing.simulation.plan import JobSpec, Op
from holdfast.testing.simulation.service.node import Program, leave_service, new_service
from holdfast.testing.simulation.service.tasks import Watch

REST = 12.0  # seconds after the heal, at least: leases of the dead end, and what they held comes again
KEPT = 2.0  # seconds for which published events, and what groups have had, are kept when somebody prunes
PATIENCE = 15.0  # seconds after a loss: by then nobody marks as published what was sent before it


@dataclass
class Outside:
    """What is on no node."""

    broker: SimulatedBroker | None
    origin: Origin


class App(Program):
    """A program with events, as Holdfast wires it."""

    def __init__(self, life: Life) -> None:
        stream = life.fleet.plan.stream
        assert stream is not None
        self.stream: Stream = stream
        super().__init__(life)
        outside: Outside = life.fleet.provider
        self.wire = None if outside.broker is None else Wire(Link(outside.broker))
        poison = "wait" if stream.holds_key else "skip"
        settings = EventSettings(poison=poison, others=(OTHERS,))  # type: ignore[arg-type]
        self.bus = Bus(self.registry, self.enqueuer, self.wire, settings)
        self.bus.send_to(life.store, self.portal)
        self._declare(life)
        self.viewing = Viewing(life, stream)
        self.service = new_service(life, self, self._beside)
        self.caching = None if stream.cache is None else Caching(life, stream.cache, self.portal)

    def _beside(self, owner: str, lease: float) -> list[Service]:
        return [*self.bus.services(owner, lease), *self.viewing.services(owner, lease)]

    def _declare(self, life: Life) -> None:
        for name in (*TYPES, BILLED):
            self.bus.catalog.declare(name, Any, unheard=True)
        for group in self.stream.groups:
            if not group.newer or is_newer(life):
                self._hear(life, group, group.pattern, f"on:{group.name}")
            if group.also and is_newer(life):
                self._hear(life, group, group.also, f"on:{group.name}:also")
        self.hooks.use(Watch(life))

    def _hear(self, life: Life, group: GroupSpec, pattern: str, name: str) -> None:
        terms = Terms(
            queue=life.fleet.plan.queues[0],
            retry=Backoff(attempts=4, first=0.4, ceiling=1.5),
            ordered=group.ordered,
            name=name,
            from_start=True,
        )
        self.bus.on(handler(life, group), [pattern], group.name, terms)

    async def emit(
        self, type_: str, data: Any, *, key: str | None, tx: object, expect: int | None = None
    ) -> Emitted:
        return await self.bus.emitter.emit(type_, data, key=key, tx=tx, expect=expect)


def is_newer(life: Life) -> bool:
    """Whether this process runs the newer of two versions of the program."""
    return life.process.node.lives > 1 or life.process.node.name == "n0"


def beside(fleet: Fleet) -> None:
    stream = fleet.plan.stream
    assert stream is not None
    broker = SimulatedBroker(fleet, stream) if stream.transport == "broker" else None
    fleet.provider = Outside(broker, Origin(fleet))


def furnish(life: Life) -> None:
    life.app = App(life)
    life.leave = lambda: _leave(life.app)


async def _leave(app: App) -> None:
    await leave_service(app.service)
    if app.caching is not None:
        await app.caching.caches.stop()
    if app.wire is not None:
        await app.wire.close()


def new_job(_life: Life, _op: Op, _place: int, _spec: JobSpec) -> NewJob:
    raise AssertionError("callers of this kind emit")


async def serve(life: Life) -> None:
    """The program."""
    app: App = life.app
    if not life.process.draining:
        if app.caching is not None:
            await app.caching.caches.start()
        await app.service.start()
        if is_newer(life):
            life.history.event("newer serves", life.name)


async def upgrade(life: Life) -> None:
    """The program of whoever deploys, after the heal: processes with the old code leave, one after the other."""
    app: App = life.app
    while not life.process.draining:
        await sleep(jittered(6.0))
        if (
            life.fleet.healed
            and not is_newer(life)
            and any(each.newer or each.also for each in app.stream.groups)
        ):
            await life.fleet.drain(life)


async def operate(life: Life) -> None:
    """The program of a person: gives again what the broker has lost, and decides what is in quarantine."""
    app: App = life.app
    while not life.process.draining:
        await sleep(jittered(4.0))
        if life.fleet.life_on(0) is not life:
            continue
        try:
            await _redrive(life, app)
            if app.stream.prunes:
                await _prune(life)
            if life.fleet.healed:
                await _decide(life)
                await _replay(life)
        except TROUBLE:
            continue  # the next round tries again


async def _redrive(life: Life, app: App) -> None:
    broker: SimulatedBroker | None = life.fleet.provider.broker
    if broker is None or not broker.lost or life.fleet.loop.time() < broker.lost[0][0] + PATIENCE:
        return
    loss = broker.lost[0]
    known = partial(app.bus.make_known, "redrive")
    number = await redrive(life.store, app.wire, make_known=known, since=loss[1])
    life.history.event("re-driven", number)
    if loss in broker.lost:  # or a process before this one was not yet over with it
        broker.lost.remove(loss)


async def _decide(life: Life) -> None:
    """Some are given up, some are tried again, and some stay."""
    for event in await life.store.outbox.find(state="quarantined"):
        chance = random()
        if chance < 0.3:
            await life.store.outbox.drop([event.id], actor="operator", reason="simulated")
            life.history.event("dropped", event.id)
        elif chance < 0.4:
            await life.store.outbox.requeue([event.id], actor="operator")
            life.history.event("requeued", event.id)


async def _replay(life: Life) -> None:
    """The code of handlers is mended: dead letters are given to them again, or stay."""
    for job in await life.store.jobs.find(state=State.DEAD):
        if random() < 0.5:
            await life.history.call(
                "replay", job.id, partial(life.store.dead.replay, [job.id], actor="operator")
            )


async def _prune(life: Life) -> None:
    """Far sooner than a program would."""
    await life.history.call("prune outbox", None, partial(life.store.outbox.prune, keep=KEPT))
    await life.history.call("prune inbox", None, partial(life.store.inbox.prune, keep=KEPT))
