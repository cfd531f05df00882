"""How events are kept and published: one options class, checked when it is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from holdfast.events.patterns import pattern
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_seconds
from holdfast.kernel.options import NamedStruct

DAY = 86_400.0
WEEK = 7 * DAY
_SLACK = 3_600.0  # seconds between two looks, and by which clocks may differ
Poison = Literal["wait", "skip"]


class EventSettings(NamedStruct, frozen=True, kw_only=True):
    """`Holdfast(events=EventSettings(keep=30 * 86_400))`. Times are in seconds."""

    keep: float = (
        WEEK  # published events, so that a broker that lost its tail can be given them again; a week at least
    )
    inbox: float = 2 * WEEK  # what each group has handled, so that an event that comes again has no effect
    poison: Poison = (
        "wait"  # an event that no broker takes: its key waits for a person, or goes on without it: skip
    )
    # A broker gives a message to another reader when one holds it for so long. A reader's lease outlives its death by longer, so
    # what it held comes first to its successor, and events of one key stay in order.
    redeliver_after: float = 3.0
    waiting: int = 1_000  # a group's deliveries that wait; more are fetched when there are fewer
    # Patterns of types on the broker that are none of this program's: passed over. A type that nobody knows is kept as a stray.
    others: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_seconds("keep", self.keep, minimum=WEEK)
        check_seconds("inbox", self.inbox)
        check_seconds("redeliver_after", self.redeliver_after, minimum=1.0, maximum=3_600.0)
        check_int("waiting", self.waiting, 1, 1_000_000)
        if self.poison not in ("wait", "skip"):
            raise UsageError(f'poison is "wait" or "skip", not {self.poison!r}.')
        if isinstance(self.others, str):
            raise UsageError(
                f"others is a list of patterns, not {self.others!r}: write others=({self.others!r},)."
            )
        for each in self.others:
            pattern(each)
        longest = self.keep + self.redeliver_after
        if self.inbox < longest:
            raise UsageError(
                f"inbox={self.inbox:g} s is shorter than the time after which an event may come again: published events are kept "
                f"for {self.keep:g} s and may be published once more, and a broker gives them again after "
                f"{self.redeliver_after:g} s. Such an event would be handled twice. Keep the inbox for {longest:g} s or longer."
            )

    def is_others(self, type_: str) -> bool:
        return any(pattern(each).hears(type_) for each in self.others)


def may_come_again(settings: EventSettings, oldest: float | None) -> float:
    """Seconds after which no event comes again: by the settings, and by the age of the oldest message that the broker keeps.

    Another program on the same broker may keep messages for longer, and a group that does not read holds them back. A broker that has
    lost a group gives it all of them once more.
    """
    return max(settings.inbox, (oldest or 0.0) + settings.redeliver_after + _SLACK)
