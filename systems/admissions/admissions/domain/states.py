"""The states of an application, the moves between them, and the progress that each shows. Progress never falls."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    DRAFT = "draft"
    SUBMITTED = "submitted"
    VERIFYING = "verifying"
    NEEDS_FILES = "needs_files"  # a file was refused, or another is asked for
    VERIFIED = "verified"
    AWAITING_PAYMENT = "awaiting_payment"
    PAID = "paid"
    MAILED = "mailed"  # the confirmation has left
    COMPLETED = "completed"  # it is with the officers
    FAILED = "failed"  # a stage ended for good; a person can let it go on
    WITHDRAWN = "withdrawn"


MOVES: dict[State, frozenset[State]] = {
    State.DRAFT: frozenset({State.SUBMITTED}),
    State.SUBMITTED: frozenset({State.VERIFYING, State.FAILED, State.WITHDRAWN}),
    State.VERIFYING: frozenset({State.VERIFIED, State.NEEDS_FILES, State.FAILED, State.WITHDRAWN}),
    State.NEEDS_FILES: frozenset({State.VERIFYING, State.WITHDRAWN}),
    State.VERIFIED: frozenset({State.AWAITING_PAYMENT, State.FAILED, State.WITHDRAWN}),
    State.AWAITING_PAYMENT: frozenset({State.PAID, State.FAILED, State.WITHDRAWN}),
    State.PAID: frozenset({State.MAILED, State.FAILED, State.WITHDRAWN}),
    State.MAILED: frozenset({State.COMPLETED, State.FAILED, State.WITHDRAWN}),
    State.COMPLETED: frozenset({State.WITHDRAWN}),
    State.FAILED: frozenset(
        {
            State.VERIFYING,
            State.VERIFIED,
            State.AWAITING_PAYMENT,
            State.PAID,
            State.MAILED,
            State.COMPLETED,
            State.WITHDRAWN,
        }
    ),
    State.WITHDRAWN: frozenset(),
}
PROGRESS: dict[State, int] = {
    State.DRAFT: 0,
    State.SUBMITTED: 0,
    State.VERIFYING: 0,
    State.NEEDS_FILES: 0,
    State.VERIFIED: 25,
    State.AWAITING_PAYMENT: 25,
    State.PAID: 50,
    State.MAILED: 75,
    State.COMPLETED: 100,
    State.FAILED: 0,
    State.WITHDRAWN: 0,
}
OPEN = frozenset(State) - {State.DRAFT, State.COMPLETED, State.WITHDRAWN}  # the pipeline has something to do
STANDING = frozenset(State) - {
    State.DRAFT,
    State.WITHDRAWN,
}  # counts as the person's application for its term


def may_move(before: State, after: State) -> bool:
    return after in MOVES[before]


def sources(after: State) -> frozenset[State]:
    """From where an application may come to this state: the `WHERE state IN` of the statement that moves it."""
    return frozenset(before for before, afters in MOVES.items() if after in afters)


def progress(state: State, before: int) -> int:
    """Of 100. What was reached stays reached, also when a stage fails or a file is asked for."""
    return max(before, PROGRESS[state])
