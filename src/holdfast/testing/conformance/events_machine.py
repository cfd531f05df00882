"""Random commands on events: what a store answers is what the model answers, and what it gives may be published."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from holdfast.store.event_records import Delivery, NewEvent, OutboxEvent
from holdfast.store.records import Lease
from holdfast.testing.conformance.events_model import Events, Kept
from holdfast.testing.conformance.kit import job as a_job
from holdfast.testing.conformance.outbox import event as an_event
from holdfast.testing.conformance.store_machine import StoreMachine, same

keys = st.sampled_from(["a", "a", "a", "b", None])
fates = st.lists(st.sampled_from(["sent", "sent", "busy", "poison", "skipped"]), min_size=1, max_size=6)
places = st.integers(0, 30)
groups = st.sampled_from(["g1", "g2"])
event_ids = st.sampled_from(["e1", "e2", "e3", "e4"])
rests = st.sampled_from([None, 5.0, 30.0])


class EventsMachine(StoreMachine):
    """A store, its model, and a lease that is lost now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Events(self.do(self.store.now()))
        self.leases: list[Lease] = []

    def lease(self, place: int) -> Lease:
        """The newest, which is held, most of the time."""
        if not self.leases or place % 10 == 0:
            self._take("r1")
        elif place % 10 == 1:
            return self.leases[place % len(self.leases)]
        elif not self.model.is_held(self.leases[-1]):
            self._take("r2")
        return self.leases[-1]

    def _take(self, owner: str) -> None:
        lease = self.do(self.store.leases.acquire("relay", owner=owner, ttl=600))
        if lease is not None:
            self.model.lease = lease
            self.leases.append(lease)

    @rule(seconds=st.sampled_from([1.0, 5.0, 30.0, 30.0, 600.0]))
    def advance(self, seconds: float) -> None:
        self.do(self.bench.advance(self.store, seconds))
        self.model.now += seconds

    @invariant()
    def every_decision_is_audited(self) -> None:
        same(len(self.do(self.store.audit.find(limit=1000))), self.model.audited)


class OutboxMachine(EventsMachine):
    def __init__(self) -> None:
        super().__init__()
        self.emitted: list[NewEvent] = []
        self.given: list[str] = []  # by the last look

    @rule(wanted=st.lists(keys, min_size=1, max_size=5))
    def emit(self, wanted: list[str | None]) -> None:
        new = [an_event(key) for key in wanted]
        self.emitted += new
        same(self.do(self.store.outbox.emit(new)), self.model.emit(new))

    @rule(wanted=st.lists(keys, min_size=1, max_size=3), commits=st.booleans())
    def emit_in_a_transaction(self, wanted: list[str | None], *, commits: bool) -> None:
        new = [an_event(key) for key in wanted]

        async def act() -> None:
            async with self.store.transaction() as tx:
                await self.store.outbox.emit(new, tx=tx)
                if not commits:
                    raise LookupError

        try:
            self.do(act())
        except LookupError:
            return
        self.emitted += new
        self.model.emit(new)

    @rule(place=places, again=st.booleans())
    @precondition(lambda self: self.emitted)
    def emit_again(self, place: int, *, again: bool) -> None:
        known = self._emitted(place)
        if known.id in self.model.outbox:
            both = [known, an_event(known.key)]
            self.emitted.append(both[1])
            same(self.do(self.store.outbox.emit(both, again=again)), self.model.emit(both))

    @rule(place=places, limit=st.sampled_from([1, 2, 3, 100]))
    def look(self, place: int, limit: int) -> None:
        lease = self.lease(place)
        found = self.do(self.store.outbox.waiting(lease, limit=limit))
        if not self.model.is_held(lease):
            same(found, [])
            return
        self._may_all_be_given(found)
        same(len(found) <= limit, True)
        same(bool(found), bool(self._free()))
        self.given = [each.id for each in found]

    @rule()
    def look_at_all(self) -> None:
        """What arrived behind one that has rested enough may come with the second look, and one that went alone later."""
        lease = self.lease(5)
        for _ in range(2):
            found = self.do(self.store.outbox.waiting(lease, limit=1000))
        self._may_all_be_given(found)
        free = {each.id for each in self._free() if not each.went_alone}
        same(free - {each.id for each in found}, set())
        self.given = [each.id for each in found]

    def _free(self) -> list[Kept]:
        return [each for each in self.model.outbox.values() if self.model.may_be_given(each)]

    def _may_all_be_given(self, found: list[OutboxEvent]) -> None:
        same([each.seq for each in found], sorted(each.seq for each in found))
        chosen = [self.model.outbox[each.id] for each in found]
        for kept in chosen:
            same((kept, self.model.may_be_given(kept)), (kept, True))
        for key in ("a", "b"):
            self._are_first([each for each in chosen if each.key == key])

    def _are_first(self, chosen: list[Kept]) -> None:
        """Of those of a key that may be given, none is left out before one that is; but of who went alone."""
        if chosen:
            before = [*self.model.before(chosen[-1]), chosen[-1]]
            free = [each for each in before if self.model.may_be_given(each) and not each.went_alone]
            same([each.id for each in chosen if not each.went_alone], [each.id for each in free])

    @rule(place=places, number=st.integers(1, 3))
    @precondition(lambda self: self.given)
    def stamp_given(self, place: int, number: int) -> None:
        lease, ids = self.lease(place), self.given[:number]
        same(self.do(self.store.outbox.stamp(lease, ids)), self.model.stamp(lease, ids))

    @rule(place=places, which=places)
    @precondition(lambda self: self.emitted)
    def stamp_any(self, place: int, which: int) -> None:
        lease, ids = self.lease(place), [self._emitted(which).id, self._emitted(which + 1).id]
        same(self.do(self.store.outbox.stamp(lease, ids)), self.model.stamp(lease, ids))

    @rule(place=places, rest=rests, blocks=st.sampled_from([True, True, False]))
    @precondition(lambda self: self.given)
    def fail_given(self, place: int, rest: float | None, *, blocks: bool) -> None:
        self._fail(self.lease(place), self.given[0], rest, blocks=blocks)

    @rule(place=places, which=places, rest=rests, blocks=st.sampled_from([True, True, False]))
    @precondition(lambda self: self.emitted)
    def fail_any(self, place: int, which: int, rest: float | None, *, blocks: bool) -> None:
        """Also one that a relay would not have sent yet."""
        found = [each.id for each in self.model.outbox.values() if each.state == "waiting"]
        event_id = found[which % len(found)] if found else self._emitted(which).id
        self._fail(self.lease(place), event_id, rest, blocks=blocks)

    @rule(wanted=fates, dies=st.sampled_from([False, False, True]))
    def relay(self, wanted: list[str], *, dies: bool) -> None:
        """As a relay does: nothing of a key is sent behind one that failed. It may die before it stamps."""
        lease, stopped, sent = self.lease(5), set[str | None](), list[str]()
        for event, fate in zip(self.do(self.store.outbox.waiting(lease, limit=6)), wanted, strict=False):
            if event.key is not None and event.key in stopped:
                continue
            if fate == "sent":
                sent.append(event.id)
                continue
            self._fail(lease, event.id, 5.0 if fate == "busy" else None, blocks=fate != "skipped")
            if fate != "skipped":
                stopped.add(event.key)
        if not dies:
            same(self.do(self.store.outbox.stamp(lease, sent)), self.model.stamp(lease, sent))

    def _fail(self, lease: Lease, event_id: str, rest: float | None, *, blocks: bool) -> None:
        failing = self.store.outbox.failed(lease, event_id, "busy", rest=rest, blocks=blocks)
        same(self.do(failing), self.model.failed(lease, event_id, rest, blocks=blocks))

    @rule(which=places)
    @precondition(lambda self: self.emitted)
    def requeue(self, which: int) -> None:
        event_id = self._quarantined(which)
        same(
            self.do(self.store.outbox.requeue([event_id], actor="ada")),
            [self.model.requeue(event_id)],
        )

    @rule(which=places)
    @precondition(lambda self: self.emitted)
    def drop(self, which: int) -> None:
        event_id = self._quarantined(which)
        dropping = self.store.outbox.drop([event_id], actor="ada", reason="broken")
        same(self.do(dropping), [self.model.drop(event_id)])

    @rule(keep=st.sampled_from([0.0, 30.0]), limit=st.sampled_from([1, 100]))
    def prune(self, keep: float, limit: int) -> None:
        same(self.do(self.store.outbox.prune(keep=keep, limit=limit)), self.model.prune(keep, limit))

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        found = {each.id: each for each in self.do(self.store.outbox.find(limit=1000))}
        same(set(found), set(self.model.outbox))
        for kept in self.model.outbox.values():
            each = found[kept.id]
            same(
                (each.state, each.version, each.tries, each.position, each.published_at, each.time),
                (kept.state, kept.version, kept.tries, kept.position, kept.published_at, kept.emitted_at),
            )
        log = self.do(self.store.outbox.log(limit=1000))
        same([each.id for each in log], [kept.id for kept in self.model.log()])
        for key in ("a", "b"):
            same(self.do(self.store.outbox.version(key)), self.model.versions.get(key, 0))

    @invariant()
    def the_lag_is_as_the_model(self) -> None:
        states = [kept.state for kept in self.model.outbox.values()]
        lag = self.do(self.store.outbox.lag())
        same(
            (lag.waiting, lag.quarantined, lag.position),
            (states.count("waiting"), states.count("quarantined"), self.model.position),
        )

    def _emitted(self, place: int) -> NewEvent:
        return self.emitted[-1 - place % len(self.emitted)]

    def _quarantined(self, place: int) -> str:
        """One of them, if there is one."""
        found = [each.id for each in self.model.outbox.values() if each.state == "quarantined"]
        return found[place % len(found)] if found else self._emitted(place).id


class InboxMachine(EventsMachine):
    def __init__(self) -> None:
        super().__init__()
        self.jobs = 0

    @rule(group=groups, from_start=st.booleans())
    def subscribe(self, group: str, *, from_start: bool) -> None:
        same(
            self.do(self.store.inbox.subscribe(group, from_start=from_start)),
            self.model.subscribe(group, from_start=from_start),
        )

    @rule(group=groups)
    def unsubscribe(self, group: str) -> None:
        same(self.do(self.store.inbox.unsubscribe(group, actor="ada")), self.model.unsubscribe(group))

    @rule(
        group=groups,
        ids=st.lists(event_ids, max_size=4),
        upto=st.none() | st.integers(0, 9),
        place=st.none() | places,
    )
    def deliver(self, group: str, ids: list[str], upto: int | None, place: int | None) -> None:
        deliveries = [Delivery(each, a_job()) for each in ids]
        lease = None if place is None else self.lease(place)
        expected = self.model.deliver(group, deliveries, upto, lease)
        self.jobs += sum(expected or [])
        same(self.do(self.store.inbox.deliver(group, deliveries, upto=upto, lease=lease)), expected)

    @rule(group=groups, event_id=event_ids)
    def handled(self, group: str, event_id: str) -> None:
        same(self.do(self.store.inbox.handled(group, event_id)), self.model.handled(group, event_id))

    @rule(keep=st.sampled_from([0.0, 30.0]))
    def prune_inbox(self, keep: float) -> None:
        same(self.do(self.store.inbox.prune(keep=keep)), self.model.prune_inbox(keep))

    @rule(wanted=st.lists(keys, min_size=1, max_size=3))
    def publish(self, wanted: list[str | None]) -> None:
        new, lease = [an_event(key) for key in wanted], self.lease(5)
        same(self.do(self.store.outbox.emit(new)), self.model.emit(new))
        ids = [each.id for each in new]
        same(self.do(self.store.outbox.stamp(lease, ids)), self.model.stamp(lease, ids))

    @rule(keep=st.sampled_from([0.0, 30.0]), limit=st.sampled_from([1, 100]))
    def prune(self, keep: float, limit: int) -> None:
        same(self.do(self.store.outbox.prune(keep=keep, limit=limit)), self.model.prune(keep, limit))

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        cursors = sorted(self.model.cursors.values(), key=lambda cursor: cursor.group)
        same(self.do(self.store.inbox.cursors()), cursors)
        same(sum(each.number for each in self.do(self.store.jobs.count())), self.jobs)
        log = self.do(self.store.outbox.log(limit=1000))
        same([each.id for each in log], [kept.id for kept in self.model.log()])
