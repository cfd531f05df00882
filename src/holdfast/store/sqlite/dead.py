"""Dead jobs, and what a person decides about them: run again, or cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.kernel.show import storable
from holdfast.store import saga_verdicts, verdicts
from holdfast.store.bell import EVERYONE
from holdfast.store.checks import refuse_edit_of_many
from holdfast.store.edge import checked
from holdfast.store.parts import in_parts
from holdfast.store.records import Replayed
from holdfast.store.sqlite import audit
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.moves import end_parked
from holdfast.store.sqlite.subject import Subject

BATCH = 500  # jobs in one transaction, so that nobody waits long for the write lock
_DEAD = """
    SELECT j.seq, j.generation, j.unique_key, iif(?2, j.args, NULL),
        (SELECT s.id FROM holdfast_saga AS s WHERE s.job_id = j.id AND s.finished_at IS NULL)
    FROM holdfast_job AS j JOIN holdfast_parked AS p USING (seq) WHERE j.id = ?1 AND p.state = 'dead'"""
# It ran once, so it need not expire before it starts; a person wants it now.
_ANEW = """
    UPDATE holdfast_job SET interruptions = 0, strikes = 0, put_offs = 0, expires_at = NULL, args = coalesce(?1, args),
        generation = generation + (?1 IS NOT NULL) WHERE seq = ?2"""
_QUEUE = """
    INSERT INTO holdfast_queued (seq, rank, priority, queue, held, token, bounded_task,
        ordering_key, concurrency_key, tenant)
    SELECT j.seq, ?1, j.priority, j.queue,
        iif(coalesce(j.ordering_key, j.concurrency_key, j.tenant) IS NULL, NULL, 'arrived'), p.token,
        iif(j.bounded, j.task, NULL), j.ordering_key, j.concurrency_key, j.tenant
    FROM holdfast_job AS j JOIN holdfast_parked AS p USING (seq) WHERE j.seq = ?2"""


def replay(db: Db, job_ids: Sequence[str], *, actor: str, args: str | None) -> list[Replayed]:
    return [_replay(db, job_id, actor, args) for job_id in job_ids]


def _replay(db: Db, job_id: str, actor: str, args: str | None) -> Replayed:
    row = db.row(_DEAD, job_id, args is not None)
    if row is None:
        return Replayed(job_id, "not_dead")
    seq, generation, unique, old_args, saga = row
    if saga is not None:
        return Replayed(job_id, "carries_saga")
    if unique is not None:
        sql = "INSERT INTO holdfast_unique (key, seq) VALUES (?, ?) ON CONFLICT DO NOTHING"
        if not db.run(sql, unique, seq):
            return Replayed(job_id, "unique_taken")
    queue_again(db, seq, args)
    entry = verdicts.replayed(job_id, actor=actor, generation=generation, old_args=old_args, new_args=args)
    audit.write(db, entry)
    return Replayed(job_id, "queued")


def queue_again(db: Db, seq: int, args: str | None = None) -> None:
    """A job that is dead or unknown, with all of its attempts."""
    db.run(_ANEW, args, seq)
    db.run(_QUEUE, db.draw("rank"), seq)
    db.run("DELETE FROM holdfast_parked WHERE seq = ?", seq)


def discard(db: Db, job_ids: Sequence[str], *, actor: str, reason: str) -> list[bool]:
    return [_discard(db, job_id, actor, reason) for job_id in job_ids]


def _discard(db: Db, job_id: str, actor: str, reason: str) -> bool:
    row = db.row(_DEAD, job_id, False)
    if row is None:
        return False
    if row[4] is not None:
        raise saga_verdicts.refuse_discard(job_id, row[4])
    end_parked(db, row[0], reason)  # it held nothing, so nobody waits for it
    audit.write(db, verdicts.discarded(job_id, actor=actor, reason=reason))
    return True


@checked
class Dead(Subject):
    async def replay(
        self, job_ids: Sequence[str], *, actor: str, args: str | None = None, tx: object | None = None
    ) -> list[Replayed]:
        refuse_edit_of_many(job_ids, args)
        answers = await in_parts(
            job_ids,
            BATCH,
            lambda part: self._file.write(partial(replay, job_ids=part, actor=actor, args=args), tx=tx),
            tx=tx,
        )
        self._file.hint((EVERYONE,), tx=tx)
        return answers

    async def discard(
        self, job_ids: Sequence[str], *, actor: str, reason: str, tx: object | None = None
    ) -> list[bool]:
        reason = storable(reason)
        return await in_parts(
            job_ids,
            BATCH,
            lambda part: self._file.write(partial(discard, job_ids=part, actor=actor, reason=reason), tx=tx),
            tx=tx,
        )
