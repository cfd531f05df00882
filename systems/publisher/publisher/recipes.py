"""An automation's rules and defaults as JSON of its row, and back. The same JSON is what the API takes and gives."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any, Literal, get_type_hints

import msgspec

from publisher.domain import defaults as domain
from publisher.domain.posts import Details
from publisher.domain.rules import DailyQuota, FixedTime, Interval, Rule

WEEK = (0, 1, 2, 3, 4, 5, 6)
TYPES = get_type_hints(Details)  # of what a default may have


class FixedTimeTold(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fixed_time"
):
    """One post at this time of these days (0 is Monday)."""

    clock: str  # 09:00
    weekdays: tuple[int, ...] = WEEK
    is_on: bool = True

    @property
    def rule(self) -> Rule:
        return FixedTime(time.fromisoformat(self.clock), frozenset(self.weekdays))


class IntervalTold(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="interval"):
    """So many posts every so many minutes; `since` is when the counting began."""

    minutes: int
    posts: int = 1
    weekdays: tuple[int, ...] = WEEK
    is_on: bool = True
    since: float | None = None

    @property
    def rule(self) -> Rule:
        since = datetime.fromtimestamp(self.since or 0.0, UTC)
        return Interval(self.minutes, since, self.posts, frozenset(self.weekdays))


class DailyQuotaTold(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="daily_quota"
):
    """So many posts a day, spread evenly over it."""

    posts: int
    weekdays: tuple[int, ...] = WEEK
    is_on: bool = True

    @property
    def rule(self) -> Rule:
        return DailyQuota(self.posts, frozenset(self.weekdays))


RuleTold = FixedTimeTold | IntervalTold | DailyQuotaTold


class DefaultTold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    value: Any
    when: Literal["if_empty", "always"] = "if_empty"


def packed_rules(rules: tuple[RuleTold, ...]) -> str:
    return msgspec.json.encode(rules).decode()


def unpacked_rules(text: str) -> tuple[RuleTold, ...]:
    return msgspec.json.decode(text, type=tuple[RuleTold, ...])


def packed_defaults(defaults: dict[str, DefaultTold]) -> str:
    return msgspec.json.encode(defaults).decode()


def unpacked_defaults(text: str) -> dict[str, DefaultTold]:
    return msgspec.json.decode(text, type=dict[str, DefaultTold])


def in_force(rules: tuple[RuleTold, ...]) -> list[Rule]:
    """Those that are on."""
    return [each.rule for each in rules if each.is_on]


def as_domain(told: dict[str, DefaultTold]) -> dict[str, domain.Default]:
    """With values of the types that details have."""
    return {
        name: domain.Default(msgspec.convert(each.value, TYPES[name]), domain.When(each.when))
        for name, each in told.items()
    }
