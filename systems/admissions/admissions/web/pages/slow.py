"""A part that is down, told to who waits for it: what is late, and that nothing is lost."""

from __future__ import annotations

from admissions.core import hf
from admissions.desk.story import Story
from admissions.domain.states import State

_FILES = (State.SUBMITTED, State.VERIFYING)
_MONEY = (State.VERIFIED, State.AWAITING_PAYMENT)


async def slow_of(its: Story) -> str:
    """The key of a sentence; empty: nothing that this application waits for is down."""
    if its.state in _FILES:
        return "slow_files" if await _is_open("clamd") else ""
    if its.state in _MONEY:
        return "slow_payments" if await _is_open("stripe-api") else ""
    return ""


async def _is_open(guard: str) -> bool:
    return str((await hf.guards.look(guard)).state) == "open"
