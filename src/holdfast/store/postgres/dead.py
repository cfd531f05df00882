"""Dead jobs, and what a person decides about them: run again, or cancelled. They hold no keys, so none are locked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from holdfast.kernel.errors import StoreError, StoreUnavailable
from holdfast.kernel.show import storable
from holdfast.store import saga_verdicts, verdicts
from holdfast.store.bell import EVERYONE
from holdfast.store.checks import refuse_edit_of_many
from holdfast.store.edge import checked
from holdfast.store.parts import in_parts
from holdfast.store.postgres.audit import audited
from holdfast.store.postgres.failures import is_taken
from holdfast.store.postgres.rows import MOVED, MOVED_J, same_id
from holdfast.store.postgres.subject import Subject
from holdfast.store.records import AuditEntry, Replayed
from holdfast.store.statements import Procedure, Statement

BATCH = 500  # jobs in one transaction
_LOOKS = 10  # at unique keys that others take just as we do


class Found(msgspec.Struct, frozen=True):
    """A dead job, its row locked."""

    job_id: str
    generation: int
    unique: str | None
    is_taken: bool  # its unique key, by another that is not over
    args: str | None
    saga: str | None  # the id of the one that it carries


def replay(job_ids: Sequence[str], *, actor: str, args: str | None) -> Procedure[list[Replayed]]:
    dead = {item.job_id: item for item in (yield from _lock_dead(job_ids, with_args=args is not None))}
    answers, chosen, keys = list[Replayed](), list[Found](), set[str]()
    for job_id in job_ids:
        item = dead.pop(job_id, None)
        if item is None:
            answers.append(Replayed(job_id, "not_dead"))
        elif item.saga is not None:
            dead[job_id] = item
            answers.append(Replayed(job_id, "carries_saga"))
        elif item.unique is not None and (item.is_taken or item.unique in keys):
            dead[job_id] = item  # it stays dead: asked for again, the answer is the same
            answers.append(Replayed(job_id, "unique_taken"))
        else:
            keys |= {item.unique} if item.unique is not None else set()
            chosen.append(item)
            answers.append(Replayed(job_id, "queued"))
    if chosen:
        yield Statement(_REPLAY, ([item.job_id for item in chosen], args))
        yield audited([_entry(item, actor, args) for item in chosen])
    return answers


def _entry(item: Found, actor: str, args: str | None) -> AuditEntry:
    return verdicts.replayed(
        item.job_id, actor=actor, generation=item.generation, old_args=item.args, new_args=args
    )


def discard(job_ids: Sequence[str], *, actor: str, reason: str) -> Procedure[list[bool]]:
    found = yield from _lock_dead(job_ids, with_args=False)
    for item in found:
        if item.saga is not None:
            raise saga_verdicts.refuse_discard(item.job_id, item.saga)
    dead = {item.job_id for item in found}
    chosen = [job_id for job_id in dict.fromkeys(job_ids) if job_id in dead]
    if chosen:
        yield Statement(_DISCARD, (chosen, reason))
        yield audited([verdicts.discarded(job_id, actor=actor, reason=reason) for job_id in chosen])
    answers = []
    for job_id in job_ids:
        answers.append(job_id in dead)
        dead.discard(job_id)
    return answers


def _lock_dead(job_ids: Sequence[str], *, with_args: bool) -> Procedure[list[Found]]:
    rows = yield Statement(_LOCK, (sorted(set(job_ids)), with_args))
    return [Found(*row) for row in rows]


# A statement of its own: the ones after it see whatever was committed while it waited.
_LOCK = f"""
SELECT j.id::text, j.generation, j.unique_key, EXISTS (
        SELECT FROM holdfast.job o
        WHERE o.unique_key = j.unique_key AND o.unique_key IS NOT NULL AND o.state <> 'dead'),
    CASE WHEN $2::bool THEN j.args END,
    (SELECT s.id FROM holdfast.saga s WHERE s.job_id = j.id AND s.finished_at IS NULL)
FROM unnest($1::uuid[]) AS g(id), holdfast.job j WHERE {same_id("g")} AND j.state = 'dead'
ORDER BY g.id FOR UPDATE OF j"""
# It ran once, so it need not expire before it starts; a person wants it now. Ranks are drawn in the caller's order.
_REPLAY = f"""
WITH given AS MATERIALIZED (
    SELECT g.id, nextval('holdfast.rank') AS rank
    FROM (SELECT id FROM unnest($1::uuid[]) WITH ORDINALITY AS u(id, place) ORDER BY place) g)
UPDATE holdfast.job j SET state = 'queued', rank = g.rank, attempt = 0, interruptions = 0, strikes = 0, put_offs = 0,
    suspect = false, alone = false, run_at = NULL, expires_at = NULL, worker = NULL, started_at = NULL, reason = NULL,
    args = coalesce($2::text, j.args), generation = j.generation + ($2::text IS NOT NULL)::int,
    held = CASE WHEN coalesce(j.ordering_key, j.concurrency_key, j.tenant) IS NOT NULL THEN 'arrived' END
FROM given g WHERE {same_id("g")}"""
_DISCARD = f"""
WITH gone AS (
    DELETE FROM holdfast.job j WHERE j.id = ANY($1::uuid[]) AND j.state = 'dead' RETURNING {MOVED_J})
INSERT INTO holdfast.history ({MOVED}, state, finished_at, reason)
SELECT {MOVED}, 'cancelled', (SELECT holdfast.now()), $2::text FROM gone"""


@checked
class Dead(Subject):
    async def replay(
        self, job_ids: Sequence[str], *, actor: str, args: str | None = None, tx: object | None = None
    ) -> list[Replayed]:
        refuse_edit_of_many(job_ids, args)
        make = partial(replay, actor=actor, args=args)
        if (executor := await self._executor(tx)) is not None:
            answers = await executor.run(make(job_ids))
        else:
            answers = await in_parts(job_ids, BATCH, lambda part: self._replay(partial(make, part)))
        self._home.hint((EVERYONE,), tx=tx)
        return answers

    async def _replay(self, make: Callable[[], Procedure[list[Replayed]]]) -> list[Replayed]:
        """A key that another took between our look and our write: look again."""
        for _ in range(_LOOKS):
            try:
                return await self._database.atomic(make)
            except StoreError as error:
                if not is_taken(error):
                    raise
                taken = error
        raise StoreUnavailable(
            f"A unique key was taken {_LOOKS} times while jobs were replayed ({taken}). Nothing was stored; try again."
        )

    async def discard(
        self, job_ids: Sequence[str], *, actor: str, reason: str, tx: object | None = None
    ) -> list[bool]:
        make = partial(discard, actor=actor, reason=storable(reason))
        if (executor := await self._executor(tx)) is not None:
            return await executor.run(make(job_ids))
        return await in_parts(job_ids, BATCH, lambda part: self._database.atomic(partial(make, part)))
