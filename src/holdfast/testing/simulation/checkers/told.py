"""What became of each event, as the ledger tells it: committed, published, delivered, handled. For the checkers of events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.events.spec import BILLED, GroupSpec, Stream
from holdfast.testing.simulation.history import Event
from holdfast.testing.simulation.ledger import Fact

_EXPIRING = 15.0  # seconds, by which the database's clock may be stepped meanwhile
_COUNTED = 60.0  # seconds for which a member that is not heard of is counted
_LEFT = ("draining", "killed")
Pair = tuple[str, str]  # group, event id


class Data(msgspec.Struct, gc=False):
    """Of a caller's event, or of one that a handler has emitted."""

    op: int = -1
    place: int = 0
    go: int = 0
    plays: dict[str, list[str]] = {}
    flaw: str = ""
    cause: str = ""  # the event that was handled
    by: str = ""  # the group


class Told:
    """The last word on each row, and the first on each move of it."""

    def __init__(self, run: Run) -> None:
        assert run.plan.stream is not None
        self.run, self.stream = run, run.plan.stream
        facts = run.ledger.facts
        self.emitted: dict[str, Fact] = {
            fact["id"]: fact for fact in facts["outbox"] if fact.change == "INSERT"
        }
        self.data = {
            event_id: msgspec.json.decode(fact["data"], type=Data) for event_id, fact in self.emitted.items()
        }
        self.last: dict[str, Fact] = {fact["id"]: fact for fact in facts["outbox"]}
        self.stamped: dict[str, Fact] = _first(
            facts["outbox"], "id", lambda fact: fact["position"] is not None
        )
        quarantined = _first(facts["outbox"], "id", lambda fact: fact["state"] == "quarantined")
        self.set_aside: dict[str, int] = {event_id: fact.step for event_id, fact in quarantined.items()}
        self.delivered: dict[Pair, Fact] = _first_pairs(facts["inbox"], lambda fact: fact.change == "INSERT")
        self.handled: dict[Pair, Fact] = _first_pairs(
            facts["inbox"], lambda fact: fact["handled_at"] is not None
        )
        self.effects: dict[Pair, list[Fact]] = defaultdict(list)
        for fact in facts["handled"]:
            self.effects[fact["handler"], fact["event_id"]].append(fact)
        self.states = run.remaining
        self._newer: list[tuple[int, int, float]] | None = None

    def heard_by(self, event_id: str) -> list[GroupSpec]:
        """The groups whose pattern fits."""
        return [group for group in self.stream.groups if hears(group, self.emitted[event_id]["type"])]

    def must_hear(self, group: GroupSpec, event_id: str, reader: Fact | Event) -> bool:
        """Whether who read this for the group had to store a delivery of it.

        What only newer programs hear he knows from those that were there when it was published, and are still counted: each says so
        before it reads anything.
        """
        type_ = self.emitted[event_id]["type"]
        if _fits(group.pattern, type_) or not hears(group, type_):
            return _fits(group.pattern, type_)
        since = self._published_since(event_id)
        return any(
            begin < min(since, reader.step) and end > reader.step and until - reader.moment > _EXPIRING
            for begin, end, until in (*self._said(group), *self._served())
        )

    def _published_since(self, event_id: str) -> int:
        """The step from which on it could be read: a broker has it before the outbox knows."""
        sent = (event for event in self.run.history.happened("published") if event.data[0] == event_id)
        if (first := next(sent, None)) is not None:
            return first.step
        return (self.stamped.get(event_id) or self.emitted[event_id]).step

    def _served(self) -> list[tuple[int, int, float]]:
        """When newer programs ran, whatever they said: each from its start, unless it could not say anything then, to its end."""
        if self._newer is None:
            self._newer = []
            history = self.run.history
            silent = {event.process for event in history.happened("could not tell")}
            for event in history.happened("newer serves"):
                if event.process not in silent:
                    left = [
                        each
                        for verb in _LEFT
                        for each in history.happened(verb)
                        if each.data == event.process
                    ]
                    end = min((each.step for each in left), default=2**62)
                    self._newer.append((event.step, end, event.moment + _COUNTED))
        return self._newer

    def _said(self, group: GroupSpec) -> list[tuple[int, int, float]]:
        """Since which step, until which, and until when at most somebody says that the group hears it."""
        found: list[tuple[int, int, float]] = []
        current: dict[str, tuple[int, float]] = {}
        for fact in self.run.ledger.facts["member"]:
            if fact["group_name"] != group.name or group.also not in fact["hears"]:
                continue
            if fact.change == "DELETE":
                if (began := current.pop(fact["member"], None)) is not None:
                    found.append((began[0], fact.step, began[1]))
            else:
                current[fact["member"]] = (fact.step, fact.moment + fact["until"] - fact.at)
        end = 2**62
        return [*found, *((begin, end, until) for begin, until in current.values())]

    def group(self, name: str) -> GroupSpec:
        return next(group for group in self.stream.groups if group.name == name)

    def is_gone(self, event_id: str) -> bool:
        """Pruned, or dropped by a person."""
        return self.last[event_id].change == "DELETE"


def told(run: Run) -> Told:
    """Made once for each run."""
    if run.told is None:
        run.told = Told(run)
    made: Told = run.told
    return made


def is_of_events(run: Run) -> bool:
    return run.plan.kind == "events"


def hears(group: GroupSpec, type_: str) -> bool:
    """An oracle of its own: all patterns of the plan are one word and a star. Also what only newer programs hear."""
    return _fits(group.pattern, type_) or (group.also != "" and _fits(group.also, type_))


def _fits(pattern: str, type_: str) -> bool:
    return type_.startswith(pattern.removesuffix("*"))


def stream_of(run: Run) -> Stream:
    assert run.plan.stream is not None
    return run.plan.stream


def _first(facts: list[Fact], column: str, fits: Callable[[Fact], Any]) -> dict[str, Fact]:
    found: dict[str, Fact] = {}
    for fact in facts:
        if fits(fact):
            found.setdefault(fact[column], fact)
    return found


def _first_pairs(facts: list[Fact], fits: Callable[[Fact], Any]) -> dict[Pair, Fact]:
    found: dict[Pair, Fact] = {}
    for fact in facts:
        if fits(fact):
            found.setdefault((fact["group_name"], fact["event_id"]), fact)
    return found


__all__ = ["BILLED", "Data", "Pair", "Told", "hears", "is_of_events", "stream_of", "told"]
