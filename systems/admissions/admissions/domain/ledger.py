"""What was paid: each charge and refund is an entry, and their sum is what counts. Three sources must agree, or somebody looks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    """Who has told us of an entry."""

    WEBHOOK = "webhook"
    RETURN = "return"  # the answer to the applicant's payment
    LOOK = "look"  # we have asked


@dataclass(frozen=True)
class Entry:
    """`amount` is negative for a refund; minor units."""

    reference: str  # of the charge or refund at the provider: the same entry told twice has the same one
    amount: int


class Standing(StrEnum):
    UNPAID = "unpaid"
    PART = "part"
    PAID = "paid"
    OVERPAID = "overpaid"
    REFUNDED = "refunded"


def standing(fee: int, entries: Iterable[Entry]) -> Standing:
    found = {each.reference: each.amount for each in entries}
    total, taken = sum(found.values()), sum(amount for amount in found.values() if amount > 0)
    if taken == 0:
        return Standing.UNPAID
    if total <= 0:
        return Standing.REFUNDED
    if total < fee:
        return Standing.PART
    return Standing.PAID if total == fee else Standing.OVERPAID


def disagreements(ours: int, theirs: int, intents: int) -> list[str]:
    """Why a person should look: sums of one application here and at the provider, and how many intents it has there."""
    found = []
    if ours != theirs:
        found.append(f"We have booked {ours / 100:.2f}, the provider {theirs / 100:.2f}.")
    if intents > 1:
        found.append(f"The provider has {intents} intents for one application.")
    return found
