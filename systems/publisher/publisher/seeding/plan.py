"""What the seeded artist has made: titles, texts, and what happens when, as plain records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from publisher.domain.states import State
from publisher.domain.zones import at

ZONE = ZoneInfo("Europe/Zurich")
TITLES = (
    "Salt lantern", "Nine tiles", "The long ferry", "Moth study", "Winter fern", "Copper tide", "Glass orchard", "Night tram",
    "Paper foxes", "Low sun", "Red scaffold", "Tidal room", "Small gods", "Quiet pylon", "Bramble", "Cold star", "Open field",
    "Harbour below", "Marsh light", "Blue hour", "The keeper", "Ash and plum", "Second storey", "Kite weather", "Fold of hills",
    "Lamplighter", "Northern stair", "Ink garden", "Slow river", "Window seat", "First frost", "The cartographer", "Salt road",
    "Two moons", "Rooftop bees", "Iron bloom", "Dune song", "Old signal", "Fern house", "Evening post", "Lighthouse, again",
    "Mara", "Stone soup", "Orchard wall", "The visitor", "Drift", "Seven windows", "Warm rain", "Thistle", "Field notes",
)  # fmt: skip
TAGS = ("gouache", "lantern", "harbour", "ink", "garden", "landscape", "portrait", "night", "city", "pattern")
TEXT = "Gouache and ink on paper, 30 × 40 cm. Drawn outside, finished at the table."  # noqa: RUF001  a size
PAST = 150  # posts of the last year
_EARLIER = ("sketch", "study", "first version")
CLOCKS = (time(9), time(12), time(18))


@dataclass(frozen=True)
class Planned:
    """One post: its number, in which state it is, and when it is or was due."""

    number: int
    state: State
    wished_at: float | None = None
    late: float = 60.0  # seconds from wished to published
    note: str = ""
    has_text: bool = True
    is_complete: bool = True

    @property
    def title(self) -> str:
        """Those of today have the plain titles; older ones are earlier tries of them."""
        if self.number >= PAST:
            again, number = divmod(self.number - PAST, len(TITLES))
            return TITLES[number] + (" II" if again else "")
        again, number = divmod(self.number, len(TITLES))
        return f"{TITLES[number]}, {_EARLIER[again]}"

    @property
    def tags(self) -> list[str]:
        return [TAGS[(self.number + step) % len(TAGS)] for step in (0, 3, 7)]


def past(today: date) -> list[Planned]:
    """Three posts in a week, for a year; the last ones came out some days ago."""
    found = []
    for number in range(PAST):
        day = today - timedelta(days=363) + timedelta(days=number * 12 // 5)
        moment = at(day, CLOCKS[number % 3], ZONE).timestamp()
        found.append(Planned(number, State.PUBLISHED, moment, late=40.0 + 37 * number % 240))
    return found


def coming(now: float) -> list[Planned]:
    """What is there today: of each state some."""
    today = datetime.fromtimestamp(now, ZONE).date()

    def on(days: int, hour: int) -> float:
        return at(today + timedelta(days=days), time(hour), ZONE).timestamp()

    scheduled = [
        Planned(160 + step, State.SCHEDULED, on(1 + step * 6 // 5, (9, 18, 12)[step % 3]))
        for step in range(23)
    ]
    drafts = [
        Planned(184 + step, State.DRAFT, is_complete=step not in (0, 3, 7), has_text=step % 3 != 1)
        for step in range(12)
    ]
    return [
        Planned(150, State.UNKNOWN, now),
        Planned(151, State.FAILED, on(-7, 9)),
        Planned(154, State.SCHEDULED, now - 50, note="late: whoever works next takes it at once"),
        Planned(152, State.PUBLISHED, now - 4.4 * 3600, late=250.0),
        Planned(153, State.CANCELLED, on(-3, 12)),
        *scheduled,
        *drafts,
        *(Planned(198 + step, State.REVIEW) for step in range(6)),
    ]
