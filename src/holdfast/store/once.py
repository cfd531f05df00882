"""A claim is ended once, whoever names it how often: by its job's id and its token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from holdfast.store.records import Claim

Pair: TypeAlias = tuple[str, int]  # id and token


def pair_of(claim: Claim) -> Pair:
    return claim.job_id, claim.token


def answers(pairs: Sequence[Pair], accepted: set[Pair]) -> list[bool]:
    """Whether each was accepted. When a claim is named again, that was not."""
    left, told = set(accepted), list[bool]()
    for pair in pairs:
        told.append(pair in left)
        left.discard(pair)
    return told
