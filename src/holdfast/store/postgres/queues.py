"""Pause and resume a queue for everyone."""

from __future__ import annotations

from functools import partial

from holdfast.store.edge import checked
from holdfast.store.postgres.backlog import OLDEST
from holdfast.store.postgres.subject import Subject
from holdfast.store.records import Paused
from holdfast.store.statements import Procedure, Statement


def pause(queue: str, *, by: str) -> Procedure[None]:
    """The row and its audit row in one statement; a queue that is paused already stays as it is."""
    yield Statement(_PAUSE, (queue, by))


_PAUSE = """
WITH paused AS (
    INSERT INTO holdfast.queue (name, paused_by) VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING RETURNING name)
INSERT INTO holdfast.audit (actor, action, subject) SELECT $2::text, 'queue.paused', 'queue:' || name FROM paused"""


def resume(queue: str, *, by: str) -> Procedure[None]:
    yield Statement(_RESUME, (queue, by))


_RESUME = """
WITH resumed AS (DELETE FROM holdfast.queue WHERE name = $1::text RETURNING name)
INSERT INTO holdfast.audit (actor, action, subject) SELECT $2::text, 'queue.resumed', 'queue:' || name FROM resumed"""


def paused() -> Procedure[list[Paused]]:
    sql = "SELECT name, paused_by, date_part('epoch', paused_at) FROM holdfast.queue ORDER BY name"
    return [Paused(*row) for row in (yield Statement(sql))]


def waits(limit: int) -> Procedure[dict[str, float]]:
    rows = yield Statement(OLDEST, (limit,))
    return {queue: max(0.0, age) for queue, age in rows if age is not None}


@checked
class Queues(Subject):
    async def pause(self, queue: str, *, by: str) -> None:
        await self._database.write(partial(pause, queue, by=by), repeatable=True)

    async def resume(self, queue: str, *, by: str) -> None:
        await self._database.write(partial(resume, queue, by=by), repeatable=True)
        self._home.hint((queue,))

    async def paused(self) -> list[Paused]:
        return await self._database.read(paused)

    async def waits(self, *, limit: int = 1000) -> dict[str, float]:
        return await self._database.read(partial(waits, limit))
