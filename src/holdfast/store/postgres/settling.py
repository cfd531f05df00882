"""After a lost answer: end the same jobs again, which the token lets happen once, and look at what became of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from holdfast.kernel.errors import CommitUnknown
from holdfast.store.once import answers
from holdfast.store.postgres import finishes as f
from holdfast.store.postgres.connection import Database
from holdfast.store.statements import Procedure
from holdfast.store.states import State
from holdfast.store.unknown import still_unknown


async def settled(
    database: Database,
    endings: Sequence[f.Ending],
    unknown: CommitUnknown,
    again: Callable[[], Procedure[list[bool]]],
) -> list[bool]:
    return await still_unknown(unknown, _settled(database, endings, unknown, again))


async def _settled(
    database: Database,
    endings: Sequence[f.Ending],
    unknown: CommitUnknown,
    again: Callable[[], Procedure[list[bool]]],
) -> list[bool]:
    """The second try waits for a first one that is still under way."""
    accepted = await database.atomic(again, urgent=True)
    pairs = [item.pair for item in endings]
    ended = {pair for pair, ok in zip(pairs, accepted, strict=True) if ok}
    if doubtful := [pair for pair in dict.fromkeys(pairs) if pair not in ended]:
        ids, tokens = [job_id for job_id, _ in doubtful], [token for _, token in doubtful]
        found = await database.read(partial(f.settle, ids, tokens))
        ended |= {pair for pair, ok in zip(doubtful, found, strict=True) if ok}
    for item in endings:
        # Put back by the first try and claimed by another since, or lost before it: nobody can tell.
        if item.state is State.QUEUED and item.pair not in ended:
            raise unknown
    return answers(pairs, ended)
