"""What runs in each process: guards that a fleet shares, callers, and in some seeds a worker whose tasks are guarded."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from holdfast.fleet.guards import GuardFleet
from holdfast.fleet.terms import terms_of
from holdfast.guards.backoff import Backoff
from holdfast.guards.budget import Budget
from holdfast.guards.bulkhead import Bulkhead
from holdfast.guards.faults import Fault
from holdfast.guards.guard import Guard
from holdfast.jobs.options import Options
from holdfast.kernel.clock import sleep
from holdfast.kernel.randomness import jittered, random
from holdfast.store.records import NewJob
from holdfast.testing.simulation.fleet import Life, watched
from holdfast.testing.simulation.guards.calling import Calling
from holdfast.testing.simulation.guards.spec import USERS, GuardSpec, Traffic
from holdfast.testing.simulation.guards.tasks import declare
from holdfast.testing.simulation.guards.watched import WatchedBreaker, WatchedLimiter, WatchedQuota
from holdfast.testing.simulation.plan import CHAOS, JobSpec, Op
from holdfast.testing.simulation.service.node import Program, begin_story, leave_service, new_service

LOAD = 45.0  # seconds after the heal for which calls go on, below what the provider and the limiters can take
REST = LOAD + 6.0  # and until all of them are over
_GENTLE = 0.3  # of the rate


class App(Program):
    """A program with guards, as Holdfast wires it."""

    def __init__(self, life: Life) -> None:
        traffic = life.fleet.plan.traffic
        assert traffic is not None
        self.traffic, self.fleet = traffic, GuardFleet()
        self.fleet.meet_at(life.store.guards)
        self.guards = {spec.name: _guard(life, self.fleet, spec) for spec in traffic.guards}
        self.calling = Calling(life, self.guards)
        super().__init__(life, partial(_share, life, self.fleet))
        declare(self.registry, self.enqueuer, life, self.guards, self.calling)
        self.service = new_service(life, self, ahead=self.fleet.ahead)
        self.ready = asyncio.Event()


def _guard(life: Life, fleet: GuardFleet, spec: GuardSpec) -> Guard[Any]:
    limiter = WatchedLimiter(
        life.history,
        rate=spec.rate,
        burst=spec.burst,
        floor=spec.floor,
        ceiling=spec.ceiling,
        per=spec.per,
        wait=spec.deadline,
        longest_pause=spec.longest_pause,
        pause=None if spec.pause is None else Backoff(first=spec.pause[0], ceiling=spec.pause[1]),
    )
    guard: Guard[Any] = Guard(
        spec.name,
        timeout=spec.timeout,
        deadline=spec.deadline,
        retry=Backoff(attempts=spec.attempts, first=0.1, ceiling=2.0),
        budget=Budget(retries=spec.budget, ratio=0.1),
        breaker=WatchedBreaker(life.history, **spec.breaker),
        limiter=limiter,
        bulkhead=None if spec.bulkhead is None else Bulkhead(spec.bulkhead[0], waiting=spec.bulkhead[1]),
        uncharged={Fault.THROTTLED, Fault.TRANSIENT, Fault.UNKNOWN} if spec.uncharged else None,
    )
    _share(life, fleet, guard)
    return guard


def _share(life: Life, fleet: GuardFleet, guard: Guard[Any]) -> None:
    """What stands between its limiter and the fleet's slices is to be seen."""
    fleet.add(guard)
    limiter = guard.limiter
    assert limiter is not None
    most = terms_of(limiter.fastest, limiter.burst).size
    limiter.share(WatchedQuota(fleet._slices, limiter, life.history), most=most)  # noqa: SLF001


def furnish(life: Life) -> None:
    life.app = App(life)
    life.leave = lambda: _leave(life.app)


async def _leave(app: App) -> None:
    await leave_service(app.service)
    await app.fleet.stop()


def new_job(life: Life, op: Op, place: int, spec: JobSpec) -> NewJob:
    begin_story(life, op, place)
    app: App = life.app
    arguments = {"op": op.number, "place": place, "script": list(spec.script), "user": spec.user}
    return app.enqueuer.build(app.registry.task(spec.task), arguments, Options(queue=spec.queue))


async def serve(life: Life) -> None:
    """The program: what is open or held for all is so before the first call."""
    app: App = life.app
    await app.fleet.start()
    app.ready.set()
    if app.traffic.jobs and not life.process.draining:
        await app.service.start()


async def call_often(life: Life) -> None:
    """The program of callers: crowds while faults strike, and then one after the other."""
    app: App = life.app
    await app.ready.wait()
    while not (life.process.draining or _is_over(life)):
        gentle = 1.0 / (_GENTLE * sum(spec.rate for spec in app.traffic.guards) / len(life.fleet.nodes))
        await sleep(gentle * 2 * random() if life.fleet.healed else jittered(app.traffic.gap))
        if life.fleet.loop.time() > CHAOS and not life.fleet.healed:
            continue
        for _ in range(1 if life.fleet.healed else app.traffic.crowd):
            _begin_call(life, app)


def _begin_call(life: Life, app: App) -> None:
    traffic: Traffic = app.traffic
    spec = _drawn(traffic.guards)
    user = USERS[int(random() * len(USERS))]
    patience = None
    if not life.fleet.healed and random() < traffic.cancels:
        patience = spec.timeout * 1.5 * random()
    life.process.start(watched(life, app.calling.begin, spec, user, patience), "call")


def _drawn(guards: tuple[GuardSpec, ...]) -> GuardSpec:
    """Each as often as its rate allows."""
    left = random() * sum(spec.rate for spec in guards)
    for spec in guards:
        left -= spec.rate
        if left < 0:
            return spec
    return guards[-1]


async def come_to_rest(life: Life) -> None:
    """The program that looks, when no call is under way any more, at what guards hold."""
    app: App = life.app
    while (
        not life.fleet.healed or life.fleet.loop.time() < life.fleet.healed_at + REST or app.calling.under_way
    ):
        await sleep(0.5)
    if not life.process.draining:
        for guard in app.guards.values():
            app.calling.look(guard)


def _is_over(life: Life) -> bool:
    return life.fleet.healed and life.fleet.loop.time() > life.fleet.healed_at + LOAD
