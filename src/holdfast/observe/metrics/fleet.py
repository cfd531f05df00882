"""The figures of the whole fleet: asked of the database by one process every 10 seconds, whoever and however many want them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import TypeAlias

from holdfast.kernel.clock import monotonic, sleep
from holdfast.observe.metrics import catalog as c
from holdfast.observe.metrics.kinds import OTHER, Metric
from holdfast.store.breakers import BreakerState
from holdfast.store.cache_records import Entry, Load, Why
from holdfast.store.ports import Store
from holdfast.store.states import State
from holdfast.store.worker_records import WorkerState
from holdfast.views.lag import lag_at

FRESH, STALE = 10.0, 600.0  # seconds
_LEASE = 10.0  # seconds for one process to ask
_FIRST = 2.0  # seconds to wait for the very first figures, when another process asks for them
_KEY = "holdfast:fleet-figures:1"
_QUEUES, _GUARDS, _VIEWS, _WORKERS = 200, 100, 50, 1_000  # at most that many are shown or counted

Figure: TypeAlias = tuple[str, list[str], float]  # the name of the metric, its labels, the number
Figures: TypeAlias = list[Figure]
Found: TypeAlias = Sequence[tuple[Metric, tuple[str, ...], float]]


async def figures(store: Store) -> Figures:
    """Those that are kept, when they are fresh; else new ones, unless another process is asking for them just now."""
    entry, until = (await store.cache.get([_KEY]))[0], monotonic() + _FIRST
    while not entry.is_fresh:
        found = await store.cache.begin(
            _KEY, tags=(), lease=_LEASE, why=Why.MISSING if entry.value is None else Why.STALE
        )
        if isinstance(found, Load):
            return await _loaded(store, found)
        entry = found
        if entry.value is not None or monotonic() > until:
            break
        await sleep(0.05)
    return _kept(entry)


async def _loaded(store: Store, load: Load) -> Figures:
    try:
        found = [each async for each in ask(store)]
    except BaseException:
        await store.cache.abandon(load)
        raise
    await store.cache.put(load, json.dumps(found), fresh=FRESH, stale=STALE)
    return [*found, (c.FLEET_AGE.name, [], 0.0)]


def _kept(entry: Entry) -> Figures:
    if entry.value is None:
        return []
    return [*map(tuple, json.loads(entry.value)), (c.FLEET_AGE.name, [], entry.age)]


async def ask(store: Store) -> AsyncIterator[Figure]:
    """Each statement is bounded, however many jobs there are."""
    for part in (_queues, _workers, _events, _views, _sagas, _guards):
        for metric, labels, number in await part(store):
            yield metric.name, [*labels], float(number)


async def _queues(store: Store) -> Found:
    counts = await store.jobs.count()
    sizes = Counter[str]()
    for count in counts:
        sizes[count.queue] += count.number
    shown = {queue for queue, _ in sizes.most_common(_QUEUES)}
    found = Counter[tuple[Metric, tuple[str, ...]]]()
    for count in counts:
        queue = count.queue if count.queue in shown else OTHER
        if count.state is State.QUEUED and count.held is not None:
            found[c.QUEUE_HELD, (queue, str(count.held))] += count.number
        elif (metric := _BY_STATE.get(count.state)) is not None:
            found[metric, (queue,)] += count.number
    waits = await store.queues.waits(limit=_QUEUES)
    paused = await store.queues.paused()
    return [
        *((metric, labels, number) for (metric, labels), number in found.items()),
        *((c.QUEUE_OLDEST, (queue,), seconds) for queue, seconds in waits.items()),
        *((c.QUEUE_PAUSED, (each.queue,), 1) for each in paused[:_QUEUES]),
    ]


_BY_STATE = {
    State.QUEUED: c.QUEUE_READY,
    State.RUNNING: c.QUEUE_RUNNING,
    State.DEAD: c.QUEUE_DEAD,
    State.UNKNOWN: c.QUEUE_UNKNOWN,
}


async def _workers(store: Store) -> Found:
    alive = [each for each in await store.workers.find(limit=_WORKERS) if each.state is not WorkerState.DEAD]
    return [(c.WORKERS, (), len(alive))]


async def _events(store: Store) -> Found:
    lag = await store.outbox.lag()
    return [
        (c.OUTBOX_WAITING, (), lag.waiting),
        (c.OUTBOX_OLDEST, (), lag.oldest or 0.0),
        (c.OUTBOX_QUARANTINED, (), lag.quarantined),
    ]


async def _views(store: Store) -> Found:
    found: list[tuple[Metric, tuple[str, ...], float]] = []
    for checkpoint in await store.views.checkpoints(limit=_VIEWS):
        if checkpoint.state == "serving":
            lag = await lag_at(store, checkpoint)
            labels = (lag.view,)
            found += [
                (c.VIEW_LAG, labels, lag.seconds),
                (c.VIEW_EVENTS, labels, lag.events),
                (c.VIEW_ASIDE, labels, lag.aside),
            ]
    return found


async def _sagas(store: Store) -> Found:
    return [(c.SAGAS, (each.name, str(each.state)), each.number) for each in await store.sagas.count()]


async def _guards(store: Store) -> Found:
    found: list[tuple[Metric, tuple[str, ...], float]] = []
    now = await store.now()
    for guard in await store.guards.find(limit=_GUARDS):
        states = Counter(node.state for node in guard.nodes)
        found += [(c.GUARD_NODES, (guard.name, str(state)), states[state]) for state in BreakerState]
        is_held = guard.held is not None and guard.held.state is BreakerState.OPEN
        found.append((c.GUARD_OPEN, (guard.name,), is_held or (guard.opened_until or 0.0) > now))
        found.append((c.GUARD_SLOWED, (guard.name,), guard.slowed))
    return found
