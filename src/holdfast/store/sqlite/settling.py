"""After a lost answer: end the same claims again, which the token lets happen once, and look at what became of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.outcomes import Retry, Snooze
from holdfast.store.once import Pair, answers, pair_of
from holdfast.store.records import Claim, Finish
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.finishes import settle
from holdfast.store.sqlite.subject import File
from holdfast.store.unknown import still_unknown


async def finished(
    file: File, finishes: Sequence[Finish], lost: CommitUnknown, call: Callable[[Db], list[bool]]
) -> list[bool]:
    back = {pair_of(item.claim) for item in finishes if isinstance(item.outcome, Retry | Snooze)}
    return await _settled(file, [pair_of(item.claim) for item in finishes], back, lost, call)


async def put_back(
    file: File, claims: Sequence[Claim], lost: CommitUnknown, call: Callable[[Db], list[bool]]
) -> list[bool]:
    pairs = [pair_of(claim) for claim in claims]
    return await _settled(file, pairs, set(pairs), lost, call)


async def _settled(
    file: File, pairs: Sequence[Pair], back: set[Pair], lost: CommitUnknown, call: Callable[[Db], list[bool]]
) -> list[bool]:
    def again(db: Db) -> set[Pair]:
        ended = {pair for pair, ok in zip(pairs, call(db), strict=True) if ok}
        return ended | {pair for pair in set(pairs) - ended if settle(db, *pair)}

    ended = await still_unknown(lost, file.write(again))
    if (
        not back <= ended
    ):  # put back by the first try and claimed by another since, or lost before: nobody can tell
        raise lost
    return answers(pairs, ended)
