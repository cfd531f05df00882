"""Which drafts an automation takes, and when each of them really goes out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

JITTER_BY_HAND, JITTER_OF_RULES = 300, 3600  # seconds at most


class Order(StrEnum):
    FIFO = "fifo"  # the oldest draft first
    LIFO = "lifo"
    RANDOM = "random"


@dataclass(frozen=True)
class Draft:
    """A draft in the pool: with a file, and without a date."""

    id: str
    made_at: datetime


def choose(pool: Sequence[Draft], number: int, order: Order, chance: random.Random) -> list[Draft]:
    """So many of them, none twice; fewer when the pool has fewer."""
    by_age = sorted(pool, key=lambda draft: (draft.made_at, draft.id))
    match order:
        case Order.FIFO:
            return by_age[:number]
        case Order.LIFO:
            return by_age[::-1][:number]
        case Order.RANDOM:
            return chance.sample(by_age, min(number, len(by_age)))


def jittered(wished: datetime, low: int, high: int, chance: random.Random) -> datetime:
    """A moment from `low` to `high` seconds after the wished one: later, and never earlier."""
    if not 0 <= low <= high <= JITTER_OF_RULES:
        raise ValueError(
            f"jitter is from 0 to {JITTER_OF_RULES:,} seconds, the first no larger than the second; not {low} to {high}."
        )
    return wished + timedelta(seconds=chance.randint(low, high))
