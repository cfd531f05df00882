"""Many at once: each in a transaction of its own, with a result for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from publisher.desk.refusals import Refusal


@dataclass(frozen=True)
class Result:
    """What became of one post of many."""

    post_id: str
    ok: bool
    words: str = ""


async def many(post_ids: Sequence[str], verb: Callable[[str], Awaitable[object]]) -> list[Result]:
    """What is refused for one is no trouble for the others."""
    results = []
    for post_id in dict.fromkeys(post_ids):
        try:
            await verb(post_id)
            results.append(Result(post_id, ok=True))
        except Refusal as refusal:
            results.append(Result(post_id, ok=False, words=refusal.words))
    return results
