"""What a seed decides of events: what is emitted, who hears it and how it goes, and how the broker misbehaves."""

from __future__ import annotations

import msgspec

KEYS = ("a", "b", "c")
PLACED, CHANGED, BILLED, NOTED = "order.placed", "order.changed", "bill.made", "note.taken"
TYPES = (PLACED, CHANGED, NOTED)  # of what callers emit; a handler emits BILLED
FLAWS = (
    "too large",
    "cursed",
)  # in an event's data: the broker refuses it, or whoever publishes it gets an error


class EventSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a caller."""

    type: str
    key: str | None
    # For each group that hears it: how its runs end, one after the other. The last counts for all that follow.
    plays: dict[str, tuple[str, ...]] = {}
    flaw: str = ""
    bad: bool = False  # views cannot take it before their code is mended, at the heal


class GroupSpec(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    pattern: str
    ordered: bool = True
    with_tx: bool = True  # its handler writes in the transaction that handles the event
    emits: bool = False  # its handler emits, in that transaction, one event of the type BILLED
    newer: bool = False  # programs of the first life of all nodes but one do not have it
    also: str = ""  # what else it hears, in newer programs only


class Weather(msgspec.Struct, frozen=True, array_like=True):
    """What the broker does for a while."""

    begin: float
    end: float
    how: str  # down, frozen, slow, gives nothing, lost answers, lost acks, twice, reordered


class CacheSpec(msgspec.Struct, frozen=True, kw_only=True):
    on: str  # memory, store
    fresh: float
    stale: float
    load: float  # seconds that a load takes, about
    fails: float  # the share of loads that fail
    gap: float  # seconds, about, between two reads on one node
    crowd: int  # reads that come together


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Of the kind `events`."""

    transport: str  # store, broker
    groups: tuple[GroupSpec, ...]
    weather: tuple[Weather, ...] = ()  # of the broker
    tail_lost: float | None = None  # when the broker dies and loses what came last
    garbage: tuple[
        float, ...
    ] = ()  # when a stranger publishes what is no event, or one of a type that nobody knows
    views: tuple[str, ...] = ()
    history: bool = True  # events are kept for the views, so that they can be built anew
    prunes: bool = False  # a person forgets what nobody has to read any more
    cache: CacheSpec | None = None
    holds_key: bool = True  # the policy: behind an event in quarantine its key waits
