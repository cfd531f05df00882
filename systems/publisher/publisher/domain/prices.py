"""Price presets of the sale queue: one price, or a range of which each post gets one."""

from __future__ import annotations

import random
from dataclasses import dataclass

LEAST, MOST = 100, 1_000_000  # cents: 1 to 10,000 dollars


@dataclass(frozen=True)
class Preset:
    """From `low` to `high` cents; equal ones are a fixed price."""

    name: str
    low: int
    high: int

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("A price preset needs a name.")
        if not LEAST <= self.low <= self.high <= MOST:
            raise ValueError(
                f"A price is from {LEAST / 100:.2f} to {MOST / 100:,.2f} dollars, the first no higher than the second; "
                f"not {self.low / 100:.2f} to {self.high / 100:.2f}."
            )

    def price(self, chance: random.Random) -> int:
        """In cents, whole dollars where the range has any."""
        dollars = range(-(-self.low // 100), self.high // 100 + 1)
        return 100 * chance.choice(dollars) if self.low != self.high and dollars else self.low
