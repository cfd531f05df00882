"""Events as they should be: the outbox, with what may be published next, and the inbox."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from holdfast.store.event_records import READER_KEPT, Cursor, Delivery, Emitted, NewEvent, OutboxState
from holdfast.store.records import Lease


@dataclass
class Kept:
    """An event in the outbox. `rest` is when it may be tried again; one that is `alone` blocks nobody."""

    id: str
    key: str | None
    version: int | None
    emitted_at: float
    state: OutboxState = "waiting"
    rest: float | None = None
    alone: bool = True
    tries: int = 0
    position: int | None = None
    published_at: float | None = None

    @property
    def order(self) -> int:
        return self.version or 0

    @property
    def went_alone(self) -> bool:
        return self.alone and self.tries > 0

    def is_in_the_way(self, now: float) -> bool:
        """Of those behind it."""
        if self.alone or self.state == "published":
            return False
        return self.state == "quarantined" or (self.rest is not None and self.rest > now)


@dataclass
class Received:
    """A row of the inbox."""

    job_id: str | None
    at: float
    handled: bool = False


@dataclass
class Events:
    """`store.outbox` and `store.inbox`."""

    now: float
    lease: Lease | None = None
    outbox: dict[str, Kept] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    position: int = 0
    cursors: dict[str, Cursor] = field(default_factory=dict)
    inbox: dict[tuple[str, str], Received] = field(default_factory=dict)
    audited: int = 0

    def is_held(self, lease: Lease) -> bool:
        held = self.lease
        return held is not None and held.token == lease.token and held.until > self.now

    def emit(self, events: Iterable[NewEvent]) -> list[Emitted]:
        answers = []
        for event in events:
            if event.id not in self.outbox:
                version = None
                if event.key is not None:
                    version = self.versions[event.key] = self.versions.get(event.key, 0) + 1
                self.outbox[event.id] = Kept(event.id, event.key, version, self.now)
            answers.append(Emitted(event.id, self.outbox[event.id].version))
        return answers

    def may_be_given(self, event: Kept) -> bool:
        """It waits, has rested enough, and nothing before it of its key is in the way."""
        if event.state != "waiting" or (event.rest is not None and event.rest > self.now):
            return False
        return not any(other.is_in_the_way(self.now) for other in self.before(event))

    def before(self, event: Kept) -> list[Kept]:
        return [other for other in self.of_key(event.key) if other.order < event.order]

    def of_key(self, key: str | None) -> list[Kept]:
        found = [event for event in self.outbox.values() if key is not None and event.key == key]
        return sorted(found, key=lambda event: event.order)

    def stamp(self, lease: Lease, ids: Sequence[str]) -> list[int] | None:
        if not self.is_held(lease):
            return None
        for event_id in ids:
            event = self.outbox.get(event_id)
            if event is not None and event.position is None:
                self.position += 1
                event.state, event.position, event.published_at = "published", self.position, self.now
        return [event.position or 0 if (event := self.outbox.get(each)) else 0 for each in ids]

    def failed(self, lease: Lease, event_id: str, rest: float | None, *, blocks: bool) -> bool:
        """Behind one that waits, how long it rests itself does not matter; nor for those behind this one."""
        if not self.is_held(lease):
            return False
        event = self.outbox.get(event_id)
        if event is None or event.state != "waiting":
            return True
        is_behind = any(other.is_in_the_way(self.now) for other in self.before(event))
        event.tries += 1
        event.state = "quarantined" if rest is None else "waiting"
        event.alone = event.key is None or not blocks
        event.rest = None if rest is None or (is_behind and not event.alone) else self.now + rest
        if not event.alone and not is_behind:
            for other in self.of_key(event.key):
                if other.order > event.order and not other.alone:
                    other.rest = None
        return True

    def requeue(self, event_id: str) -> bool:
        event = self.outbox.get(event_id)
        if event is None or event.state != "quarantined":
            return False
        event.state, event.tries, event.rest = "waiting", 0, None
        self.audited += 1
        return True

    def drop(self, event_id: str) -> bool:
        event = self.outbox.get(event_id)
        if event is None or event.state != "quarantined":
            return False
        del self.outbox[event_id]
        self.audited += 1
        return True

    def log(self) -> list[Kept]:
        found = [event for event in self.outbox.values() if event.position is not None]
        return sorted(found, key=lambda event: event.position or 0)

    def prune(self, keep: float, limit: int) -> int:
        readers = [each.position for each in self.cursors.values() if each.seen_at > self.now - READER_KEPT]
        read = min(readers, default=inf)
        gone = [
            event.id
            for event in self.log()[:limit]
            if (event.published_at or 0) <= self.now - keep and (event.position or 0) <= read
        ]
        for event_id in gone:
            del self.outbox[event_id]
        return len(gone)

    def subscribe(self, group: str, *, from_start: bool) -> Cursor:
        known = self.cursors.get(group)
        position = known.position if known is not None else 0 if from_start else self.position
        self.cursors[group] = Cursor(group, position, self.now)
        return self.cursors[group]

    def unsubscribe(self, group: str) -> bool:
        self.audited += group in self.cursors
        return self.cursors.pop(group, None) is not None

    def deliver(
        self, group: str, deliveries: Sequence[Delivery], upto: int | None, lease: Lease | None
    ) -> list[bool] | None:
        if lease is not None and not self.is_held(lease):
            return None
        answers = []
        for each in deliveries:
            answers.append((group, each.event_id) not in self.inbox)
            self.inbox.setdefault((group, each.event_id), Received(each.job.id, self.now))
        if upto is not None:
            known = self.cursors.get(group)
            position = upto if known is None else max(upto, known.position)
            self.cursors[group] = Cursor(group, position, self.now)
        return answers

    def handled(self, group: str, event_id: str) -> bool:
        row = self.inbox.setdefault((group, event_id), Received(None, self.now))
        was, row.handled = row.handled, True
        return not was

    def prune_inbox(self, keep: float) -> int:
        """No job is ever forgotten here."""
        gone = [name for name, row in self.inbox.items() if row.at <= self.now - keep and row.handled]
        for name in gone:
            del self.inbox[name]
        return len(gone)
