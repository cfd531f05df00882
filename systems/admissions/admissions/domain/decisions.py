"""Decisions on applications: drafted by one officer, checked by another, and released for a whole round at one time."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    ACCEPT = "accept"
    WAIT_LIST = "wait_list"
    REJECT = "reject"


class Stage(StrEnum):
    DRAFTED = "drafted"
    CHECKED = "checked"
    RELEASED = "released"


MOVES: dict[Stage | None, frozenset[Stage]] = {
    None: frozenset({Stage.DRAFTED}),
    Stage.DRAFTED: frozenset({Stage.DRAFTED, Stage.CHECKED}),
    Stage.CHECKED: frozenset({Stage.DRAFTED, Stage.RELEASED}),  # drafted again: it needs another check
    Stage.RELEASED: frozenset(),
}


def may_move(before: Stage | None, after: Stage) -> bool:
    return after in MOVES[before]


def may_check(drafted_by: str, officer: str) -> bool:
    """Nobody checks what they have drafted."""
    return drafted_by != officer
