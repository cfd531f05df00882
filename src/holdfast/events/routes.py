"""Where an event goes within a group: to the task of one handler. Members tell each other theirs, in JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from holdfast.events.patterns import pattern
from holdfast.kernel.ids import new_id
from holdfast.kernel.masking import SECRETS_FIELD
from holdfast.kernel.names import LONGEST_NAME, check_name
from holdfast.store.event_records import Delivery
from holdfast.store.records import NewJob


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
        """Another version of the program may have said it."""
        check_name("task", self.task)
        check_name("queue", self.queue)

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


_COUNTED = 1_000_000_000  # never reached: with a bound, waiting jobs of a task can be counted quickly
_list = msgspec.json.Decoder(list[Route])


def written(routes: Sequence[Route]) -> str:
    return msgspec.json.encode(routes).decode()


def routes_in(texts: Iterable[str]) -> list[Route]:
    """What members have told, of any version of the program: one that cannot be read here is not for us to deliver."""
    found: dict[Route, None] = {}
    for text in texts:
        try:
            found.update(dict.fromkeys(_list.decode(text)))
        except msgspec.MsgspecError:
            continue
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
            max_waiting=_COUNTED,
            correlation_id=event.correlation_id or event.id,
            causation_id=event.id,
            trace=event.trace,
        ),
    )


def ordering(group: str, key: str) -> str:
    """Events of one key wait for each other within a group, whichever handlers of it they go to."""
    text = f"on:{group}:{key}"
    if len(text.encode()) <= LONGEST_NAME:
        return text
    return f"on:{group}:{hashlib.sha256(key.encode()).hexdigest()}"
