"""Where an event goes within a group: to the task of one handler. Members tell each other theirs, in JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from holdfast.events.patterns import pattern
from holdfast.kernel.ids import new_id
from holdfast.kernel.masking import SECRETS_FIELD
from holdfast.kernel.names import LONGEST_NAME, check_int, check_name
from holdfast.store.event_records import Delivery
from holdfast.store.records import UNBOUNDED, NewJob


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """All that a member of the group must know to store a delivery, also one whose handler it does not have."""

    patterns: tuple[str, ...]
    task: str
    queue: str
    priority: int = 0
    ordered: bool = True  # events of one key one after the other
    guard: str | None = None
    concurrency: int | None = None  # of the group, at most so many at a time
    secret: bool = False  # the handler's type of data has parts that are not shown

    def __post_init__(self) -> None:
        """Another version of the program may have said it: a wrong one would stop the whole group at the first event."""
        check_name("task", self.task)
        check_name("queue", self.queue)
        for each in self.patterns:
            pattern(each)
        check_int("priority", self.priority, -100, 100)
        if self.concurrency is not None:
            check_int("concurrency", self.concurrency, 1, 10_000)
        if self.guard is not None:
            check_name("guard", self.guard)

    def hears(self, type_: str) -> bool:
        return any(pattern(each).hears(type_) for each in self.patterns)


class Telling(msgspec.Struct, frozen=True, gc=False):
    """What a delivery needs to know of an event."""

    id: str
    type: str
    key: str | None
    correlation_id: str | None
    trace: str | None
    body: bytes


_list = msgspec.json.Decoder(list[msgspec.Raw])
_route = msgspec.json.Decoder(Route)


def written(routes: Sequence[Route]) -> str:
    return msgspec.json.encode(routes).decode()


def routes_in(texts: Iterable[str]) -> list[Route]:
    """What members have told, of any version of the program: one that cannot be read here is not for us to deliver."""
    found: dict[Route, None] = {}
    for text in texts:
        with suppress(msgspec.MsgspecError):
            for each in _list.decode(text):
                with suppress(msgspec.MsgspecError):
                    found[_route.decode(each)] = None
    return list(found)


def delivery(group: str, route: Route, event: Telling, *, secret: bool = False) -> Delivery:
    """The job that will handle it. Its id is new, and of no weight: the group and the event's id make it one of a kind."""
    hidden = f',"{SECRETS_FIELD}":["event"]' if secret or route.secret else ""
    return Delivery(
        event.id,
        NewJob(
            id=new_id(),
            task=route.task,
            args=f'{{"event":{event.body.decode()}{hidden}}}',
            queue=route.queue,
            priority=route.priority,
            ordered=ordering(group, event.key) if route.ordered and event.key is not None else None,
            concurrency=None if route.concurrency is None else f"on:{group}",
            concurrency_limit=route.concurrency,
            guard=route.guard,
            max_waiting=UNBOUNDED,
            correlation_id=event.correlation_id or event.id,
            causation_id=event.id,
            trace=event.trace,
        ),
    )


def ordering(group: str, key: str) -> str:
    """Events of one key wait for each other within a group, whichever handlers of it they go to."""
    before = f"on:{group}:"
    if ":" in group:  # or nobody could tell where the key begins, and groups would wait for each other
        before = f"on/{len(group)}:{group}:"
    text = before + key
    return text if len(text.encode()) <= LONGEST_NAME else before + hashlib.sha256(key.encode()).hexdigest()
