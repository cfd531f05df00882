"""Tags of cached values. One that another's open transaction has just made or changed is waited for on few connections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from holdfast.kernel.loops import PerLoop
from holdfast.kernel.spawn import start
from holdfast.store.cache_records import TAG_KEPT
from holdfast.store.postgres.connection import Database
from holdfast.store.postgres.patience import Patience
from holdfast.store.postgres.rows import SOON
from holdfast.store.statements import Procedure, Statement


def known_of(tags: Sequence[str]) -> Procedure[dict[str, int]]:
    """The generations of those that are known. Nobody is waited for: what a tag has now is as good, and will not count."""
    if not tags:
        return {}
    return {row[0]: row[1] for row in (yield Statement(_KNOWN, (list(tags),)))}


_KNOWN = """
SELECT t.tag, t.generation FROM unnest($1::text[]) AS g (tag)
    JOIN holdfast.cache_tag AS t ON t.tag = ANY(ARRAY[g.tag])"""


def learn(tag: str) -> Procedure[None]:
    yield Statement(_LEARN, (tag, TAG_KEPT))


_LEARN = f"""
INSERT INTO holdfast.cache_tag (tag, generation, forget)
SELECT $1::text, nextval('holdfast.token'), holdfast.now() + make_interval(secs => $2::float8) WHERE {SOON}
ON CONFLICT (tag) DO NOTHING"""


def invalidate_tags(tags: Sequence[str], *, impatient: bool = False) -> Procedure[None]:
    """Also those that are not known: a load may learn of one before this is committed."""
    yield Statement(_INVALIDATE[impatient], (list(tags), TAG_KEPT))


_INVALIDATE = [
    f"""
INSERT INTO holdfast.cache_tag (tag, generation, forget)
SELECT g.tag, nextval('holdfast.token'), holdfast.now() + make_interval(secs => $2::float8)
FROM (SELECT u.tag FROM unnest($1::text[]) AS u (tag) WHERE {only} ORDER BY u.tag COLLATE "C") AS g
ON CONFLICT (tag) DO UPDATE SET generation = nextval('holdfast.token')"""
    for only in ("true", SOON)
]


class Tags:
    """Whoever is blocked takes turns with the others who are. The pool is for everybody: jobs and emits need it, too."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._patience = Patience(max(1, database.target.pool_size // 4))
        self._under_way: PerLoop[dict[str, asyncio.Task[None]]] = PerLoop(dict)

    async def learn(self, tags: Sequence[str]) -> None:
        """Make them known. Of all who want the same one, however many, one asks."""
        for tag in tags:
            await asyncio.shield(self._learning(tag))

    def _learning(self, tag: str) -> asyncio.Task[None]:
        here = self._under_way.get()
        if tag not in here:
            here[tag] = start(self._soon(partial(learn, tag)), name=f"cache-tag:{tag}")
            here[tag].add_done_callback(partial(_ended, here, tag))
        return here[tag]

    async def invalidate(self, tags: Sequence[str]) -> None:
        await self._soon(partial(invalidate_tags, tags, impatient=True))

    async def _soon(self, make: partial[Procedure[None]]) -> None:
        await self._patience.wait(partial(self._database.write, make, repeatable=True))


def _ended(here: dict[str, asyncio.Task[None]], tag: str, task: asyncio.Task[None]) -> None:
    here.pop(tag, None)
    if not task.cancelled():
        task.exception()  # whoever wanted it may have gone
