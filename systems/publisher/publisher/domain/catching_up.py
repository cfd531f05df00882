"""What an automation makes up for after an outage, and how: spread, so that not all of it goes out at once.

A nominal time is missed when it is looked at more than ten minutes late. Of what was missed in the last day up to 48 posts are made up
for, the newest ones, from now on ten minutes apart. Everything else that was missed is let go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from publisher.domain.rules import Slot

LATE = timedelta(minutes=10)
LET_GO = timedelta(days=1)
APART = timedelta(minutes=10)
MOST = 48  # posts
JITTER_MOST = 300  # seconds, of what is made up for: it stays apart


@dataclass(frozen=True)
class Planned:
    """A nominal time, and the moment that is wished for each of its posts."""

    nominal: datetime
    wished: tuple[datetime, ...]
    is_missed: bool = False


@dataclass(frozen=True)
class Plan:
    planned: tuple[Planned, ...]
    let_go: tuple[Slot, ...] = ()  # whole, or what is over the most


def plan(due: Sequence[Slot], now: datetime) -> Plan:
    """Of nominal times that are due, in their order."""
    missed = [slot for slot in due if slot.at < now - LATE]
    kept, let_go = _newest(missed, now)
    made_up, number = [], 0
    for slot in kept:
        wished = tuple(now + (number + each) * APART for each in range(slot.posts))
        made_up.append(Planned(slot.at, wished, is_missed=True))
        number += slot.posts
    on_time = [Planned(slot.at, (slot.at,) * slot.posts) for slot in due if slot.at >= now - LATE]
    return Plan((*made_up, *on_time), let_go)


def _newest(missed: Sequence[Slot], now: datetime) -> tuple[list[Slot], tuple[Slot, ...]]:
    kept: list[Slot] = []
    let_go: list[Slot] = []
    room = MOST
    for slot in reversed(missed):
        posts = min(slot.posts, room) if slot.at >= now - LET_GO else 0
        if posts:
            kept.append(Slot(slot.at, posts))
        if posts < slot.posts:
            let_go.append(Slot(slot.at, slot.posts - posts))
        room -= posts
    return kept[::-1], tuple(let_go[::-1])
