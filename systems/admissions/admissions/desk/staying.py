"""How long applications stay where: by the history of those that came through last."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import quantiles

from admissions.core import hf

_LAST = 1_000  # applications
STAYS = {
    "files": ("submitted", "verified"),
    "fee": ("payment_opened", "paid"),
    "mail": ("paid", "mailed"),
    "all": ("submitted", "completed"),
}


@dataclass(frozen=True)
class Stay:
    """Seconds within which half of them, and 95 of 100, had left."""

    name: str
    number: int
    half: float
    most: float


async def stays() -> list[Stay]:
    kinds = sorted({kind for pair in STAYS.values() for kind in pair})
    places = ", ".join(f"${2 + number}" for number in range(len(kinds)))
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT application_id, kind, min(at) FROM steps WHERE application_id IN "  # noqa: S608  our own names
            "(SELECT id FROM applications WHERE state = 'completed' ORDER BY submitted_at DESC LIMIT $1) "
            f"AND kind IN ({places}) GROUP BY application_id, kind",
            _LAST,
            *kinds,
        )
    times: dict[str, dict[str, float]] = {}
    for application, kind, at in rows:
        times.setdefault(application, {})[kind] = float(at)
    return [_stay(name, first, last, times) for name, (first, last) in STAYS.items()]


def _stay(name: str, first: str, last: str, times: dict[str, dict[str, float]]) -> Stay:
    found = [each[last] - each[first] for each in times.values() if first in each and last in each]
    if len(found) < 2:
        only = found[0] if found else 0.0
        return Stay(name, len(found), only, only)
    cuts = quantiles(found, n=100, method="inclusive")
    return Stay(name, len(found), cuts[49], cuts[94])
