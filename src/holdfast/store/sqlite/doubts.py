"""Effects of a job that may have been done, and of which nobody knows: they wait for a person from now on."""

from __future__ import annotations

from holdfast.store.doubts import noted
from holdfast.store.sqlite.connection import Db

# The row of the job says whether there is anything to look for. What is unknown waits for a person, of whichever kind it is.
_OPEN = """
    SELECT s.name FROM holdfast_job AS j CROSS JOIN holdfast_step AS s ON s.seq = j.seq AND s.generation = j.generation
    WHERE j.seq = ? AND j.steps_of IS NOT NULL AND j.steps_of = j.generation
        AND (s.progress = 'unknown' OR s.kind = 'at_most_once' AND s.progress IN ('begun', 'sought'))
    ORDER BY s.number, s.name"""
_MARK = """
    UPDATE holdfast_step SET progress = 'unknown', at = ?2 WHERE seq = ?1 AND kind = 'at_most_once'
        AND progress IN ('begun', 'sought') AND generation = (SELECT generation FROM holdfast_job WHERE seq = ?1)"""
# For whoever ends many at once; `j` is the job.
IS_SURE = """CASE WHEN j.steps_of IS NOT NULL AND j.steps_of = j.generation THEN NOT EXISTS (
        SELECT 1 FROM holdfast_step AS s WHERE s.seq = j.seq AND s.generation = j.generation
            AND (s.progress = 'unknown' OR s.kind = 'at_most_once' AND s.progress IN ('begun', 'sought'))) ELSE 1 END"""


def open_effects(db: Db, seq: int) -> list[str]:
    """Their names, in order."""
    return [name for (name,) in db.rows(_OPEN, seq)]


def leave_to_person(db: Db, seq: int) -> list[str]:
    """The same, and they are unknown from now on."""
    if names := open_effects(db, seq):
        db.run(_MARK, seq, db.now)
    return names


def reason_with_doubts(db: Db, seq: int, reason: str) -> str:
    """Of a job that is cancelled."""
    return noted(reason, leave_to_person(db, seq))
