"""The states of a post, and which moves there are between them."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    REVIEW = "review"  # a tool has sent it; its artist has not looked yet
    DRAFT = "draft"
    SCHEDULED = "scheduled"
    PUBLISHING = "publishing"  # from just before the call until its outcome is known
    PUBLISHED = "published"
    FAILED = "failed"
    UNKNOWN = "unknown"  # the call was made, and nobody knows what became of it
    CANCELLED = "cancelled"


MOVES: dict[State, frozenset[State]] = {
    State.REVIEW: frozenset({State.DRAFT}),
    State.DRAFT: frozenset({State.SCHEDULED}),
    State.SCHEDULED: frozenset({State.PUBLISHING, State.CANCELLED, State.FAILED, State.DRAFT}),
    State.PUBLISHING: frozenset({State.PUBLISHED, State.FAILED, State.UNKNOWN, State.SCHEDULED}),
    State.UNKNOWN: frozenset({State.PUBLISHED, State.SCHEDULED, State.FAILED}),
    State.FAILED: frozenset({State.SCHEDULED, State.DRAFT, State.PUBLISHED}),
    State.CANCELLED: frozenset({State.SCHEDULED, State.DRAFT}),
    State.PUBLISHED: frozenset(),
}
EDITABLE = frozenset({State.REVIEW, State.DRAFT, State.SCHEDULED, State.FAILED, State.CANCELLED})
DELETABLE = EDITABLE | {State.PUBLISHED}  # not while a call may be under way
OPEN = frozenset({State.SCHEDULED, State.PUBLISHING, State.UNKNOWN})  # it has a job, or waits for a decision


def may_move(before: State, after: State) -> bool:
    return after in MOVES[before]


def sources(after: State) -> frozenset[State]:
    """From where a post may come to this state: the `WHERE state IN` of the statement that moves it."""
    return frozenset(before for before, afters in MOVES.items() if after in afters)
