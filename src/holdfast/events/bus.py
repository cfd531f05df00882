"""All that a program has to do with events: what it declares and hears, how it emits, and the services that move them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from holdfast.events.catalog import Catalog
from holdfast.events.consumer import OUTLIVES, BrokerConsumer, Consumer, StoreConsumer
from holdfast.events.emitting import Emitter
from holdfast.events.members import Members
from holdfast.events.relay import Relay
from holdfast.events.settings import EventSettings
from holdfast.events.subscribers import Group, Subscriber, Subscribers, Terms
from holdfast.events.wire import Wire
from holdfast.fleet.leading import TTL
from holdfast.jobs.blocking import Portal
from holdfast.jobs.enqueue import Enqueuer
from holdfast.jobs.registry import Registry
from holdfast.kernel.service import Service
from holdfast.store.ports import Store


class Bus:
    _store: Store

    def __init__(
        self, registry: Registry, enqueuer: Enqueuer, wire: Wire | None, settings: EventSettings
    ) -> None:
        self.wire, self.settings = wire, settings
        self.catalog = Catalog()
        self.subscribers = Subscribers(registry, enqueuer)
        self.emitter = Emitter(self.catalog)

    def send_to(self, store: Store, portal: Portal) -> None:
        """From now on events are stored there."""
        self._store = store
        self.subscribers.send_to(store, portal)
        self.emitter.send_to(store, portal)

    def on(
        self, function: Callable[..., Any], patterns: Sequence[str], group: str, terms: Terms
    ) -> Subscriber:
        made = self.subscribers.add(function, patterns, group, terms)
        for text in made.route.patterns:
            self.catalog.hear(f"{made.task.name} {text}", text)
        return made

    @property
    def groups(self) -> list[Group]:
        return list(self.subscribers.groups.values())

    # --- services ---

    def check(self) -> None:
        """At the start of a worker: raises UsageError when something that is emitted would fall into nothing."""
        self.catalog.check_heard()
        self.subscribers.check_supplied()

    def services(self, owner: str, lease: float) -> list[Service]:
        """What a worker with this lease runs beside its jobs. Groups are known before the relay begins: so they hear all that it publishes."""
        self.check()
        if self.catalog.is_empty:
            return []
        ttl = min(TTL, lease)  # or a dead worker's events would wait longer than its jobs
        members: list[Service] = [Members(self._store, self.groups, member=owner)] if self.groups else []
        consumers = [self.consumer(group, owner, ttl) for group in self.groups]
        return [*members, *consumers, self.relay(owner, ttl)]

    def relay(self, owner: str, ttl: float = TTL) -> Relay:
        known = partial(self.make_known, f"{owner} (relay)")
        return Relay(self._store, self.wire, self.settings, make_known=known, owner=owner, ttl=ttl)

    async def make_known(self, owner: str) -> None:
        """The program's groups, before anything is published: so they hear it, whenever their first worker starts."""
        for group in self.groups:
            await self.consumer(group, owner).subscribe()

    def consumer(self, group: Group, owner: str, ttl: float = TTL) -> Consumer:
        made: Consumer
        if self.wire is None:
            made = StoreConsumer(self._store, group, self.settings, owner=owner, ttl=ttl)
        else:
            longest = min(TTL, max(ttl, OUTLIVES * self.settings.redeliver_after))
            made = BrokerConsumer(self._store, group, self.settings, self.wire, owner=owner, ttl=longest)
            made.quarantine.is_known = self._is_known
        made.is_secret = self.catalog.is_secret
        return made

    def _is_known(self, type_: str) -> bool:
        """Of this program, or said to be another's."""
        return self.catalog.is_known(type_) or self.settings.is_others(type_)
