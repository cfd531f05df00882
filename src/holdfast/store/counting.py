"""How many jobs there are, without counting all of them for each who asks: a look at each kind, and a tally of the crowds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

import msgspec

from holdfast.store.records import Count
from holdfast.store.states import Held, State

CROWD = 1_000  # jobs of one kind that are counted for whoever asks; of more, the tally tells
_EVERY = 10.0  # seconds between two tallies,
_SHARE = 200.0  # and at least so many times as long as the last one took: it is in the way of others
Kind: TypeAlias = tuple[str, str | None]  # state, and by what it is held


class Tally(msgspec.Struct, frozen=True):
    """One number of a kind and queue; `at` and `took` are None when it was counted just now."""

    state: str
    held: str | None
    queue: str
    number: int
    at: float | None = None
    took: float | None = None

    @property
    def kind(self) -> Kind:
        return self.state, self.held


def crowds(seen: Iterable[Tally]) -> set[Kind]:
    """Of which kinds a look has seen as many as it looks at."""
    numbers: dict[Kind, int] = {}
    for each in seen:
        numbers[each.kind] = numbers.get(each.kind, 0) + each.number
    return {kind for kind, number in numbers.items() if number >= CROWD}


def is_old(tallies: Iterable[Tally], wanted: Collection[Kind], now: float) -> bool:
    """Whether it is time for another tally of these kinds."""
    ages = {each.kind: (each.at or 0.0, each.took or 0.0) for each in tallies}
    return any(
        kind not in ages or now - ages[kind][0] > max(_EVERY, _SHARE * ages[kind][1]) or ages[kind][0] > now
        for kind in wanted
    )


def counted(seen: Sequence[Tally], told: Sequence[Tally]) -> list[Count]:
    """What was seen, and of the crowds what was told; a queue has never fewer than were seen."""
    found = {(each.queue, *each.kind): each for each in seen}
    for each in told:
        there = found.get((each.queue, *each.kind))
        if there is None or there.number <= each.number:
            found[each.queue, *each.kind] = each
    ordered = sorted(
        found.values(), key=lambda each: (each.queue, each.state, each.held is not None, each.held or "")
    )
    return [
        Count(
            each.queue,
            State(each.state),
            None if each.held is None else Held(each.held),
            each.number,
            each.at,
        )
        for each in ordered
    ]
