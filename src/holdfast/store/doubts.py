"""Words for a job that ends while nobody knows of effects of it whether they were done: the same on every store."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernel.errors import StepLeft
from holdfast.kernel.show import storable

ENDED = "its task has ended"
EXPIRED = "expired"
_NAMED = 5  # of many, so many are named; `unknown show` has them all


def unsure(why: str, effects: Sequence[str]) -> str:
    """Why a job is unknown that would be over or dead."""
    return storable(f"{why.rstrip(' .')}, and {_nobody_knows(effects)}")


def noted(reason: str, effects: Sequence[str]) -> str:
    """Why a job is cancelled, and what it leaves behind."""
    return storable(f"{reason} ({_nobody_knows(effects)})") if effects else reason


def refusal(job_id: str, effects: Sequence[str]) -> StepLeft:
    """In a caller's transaction: rows that belong to an end must not commit with a job that will run again."""
    return StepLeft(
        f"Job {job_id} cannot end like this: {_nobody_knows(effects)}. This transaction must roll back."
    )


def _nobody_knows(effects: Sequence[str]) -> str:
    named = ", ".join(map(repr, effects[:_NAMED]))
    if len(effects) == 1:
        return f"nobody knows whether effect {named} was done"
    rest = len(effects) - _NAMED
    return f"nobody knows whether effects {named}{f' and {rest:,} more' if rest > 0 else ''} were done"
