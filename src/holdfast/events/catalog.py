"""What a program says about events: their types, the types of their data, and who hears them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from holdfast.events.patterns import Pattern, check_type, pattern
from holdfast.jobs.signature import is_secret
from holdfast.kernel.codec import decode_stored
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.show import show

D = TypeVar("D")


class EventType(msgspec.Struct, Generic[D], frozen=True):
    """Made by `hf.event("order.placed", Order)`; `hf.emit` takes it in place of the name."""

    name: str
    data: Any = Any  # the type of the data
    unheard: bool = False  # it needs no subscriber

    def __str__(self) -> str:
        return self.name


class Catalog:
    def __init__(self) -> None:
        self.types: dict[str, EventType[Any]] = {}
        self._hearers: dict[str, Pattern] = {}  # by who hears
        self._secret: dict[
            str, bool
        ] = {}  # of declared types: to look through one takes longer than to deliver an event

    @property
    def is_empty(self) -> bool:
        return not self.types and not self._hearers

    def declare(self, name: str, data: Any, *, unheard: bool) -> EventType[Any]:
        made: EventType[Any] = EventType(check_type(name), data, bool(unheard))
        _check_readable(made)
        there = self.types.get(made.name)
        if there is not None and not _is_same(there, made):
            raise UsageError(
                f"The event type {made.name!r} is declared twice, with data of {_told(there.data)} and of {_told(data)}. "
                "Declare it once, and import it where it is emitted."
            )
        self.types[made.name] = made
        self._secret[made.name] = is_secret(data)
        return made

    def hear(self, by: str, text: str) -> Pattern:
        """Somebody hears these types: a subscriber, a view, a saga. `by` names it, once for each pattern."""
        found = self._hearers[by] = pattern(text)
        return found

    def is_heard(self, name: str) -> bool:
        return any(each.hears(name) for each in self._hearers.values())

    def is_known(self, name: str) -> bool:
        return name in self.types or self.is_heard(name)

    def emitted(self, given: EventType[Any] | str) -> EventType[Any]:
        """The type of an event to emit. Raises UsageError when nobody declares it and nobody hears it."""
        name = given.name if isinstance(given, EventType) else check_type(given)
        if (found := self.types.get(name)) is not None:
            return found
        if isinstance(given, EventType):
            raise UsageError(
                f"The event type {name!r} is of another Holdfast. Declare it here: hf.event({name!r}, …)."
            )
        if not self.is_heard(name):
            raise UsageError(
                f"Nobody declares the event type {name!r} here, and nobody hears it: it may be mistyped. "
                f"Declare it: hf.event({name!r}, TypeOfItsData). Declared are: {', '.join(sorted(self.types)) or 'none'}."
            )
        return EventType(name)

    def is_secret(self, name: str) -> bool:
        """Whether any part of its data is marked `Secret`."""
        return self._secret.get(name, False)

    def check_heard(self) -> None:
        """At the start of a worker: what is emitted must not fall into nothing."""
        lost = sorted(
            name for name, each in self.types.items() if not each.unheard and not self.is_heard(name)
        )
        if lost:
            raise UsageError(
                f"No subscriber in this program hears {', '.join(lost)}. Add a handler, @hf.on({lost[0]!r}, group=…), and import "
                f"its module before the worker starts; or, when another program hears it or nobody needs to, say so: "
                f"hf.event({lost[0]!r}, …, unheard=True)."
            )


def _check_readable(made: EventType[Any]) -> None:
    """Now, and not at the first emit: whether anything in JSON becomes its data."""
    try:
        decode_stored("null", made.data)
    except PayloadError:
        pass  # another value may
    except UsageError as error:
        raise UsageError(f"The data of event type {made.name!r}: {error}") from None


def _is_same(there: EventType[Any], made: EventType[Any]) -> bool:
    """Also when its module was run as a program and is imported as well: then the class is there twice."""
    return there.unheard == made.unheard and (
        there.data == made.data or _told(there.data) == _told(made.data)
    )


def _told(data: Any) -> str:
    return str(data.__qualname__) if isinstance(data, type) else show(data)
