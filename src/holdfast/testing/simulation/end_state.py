"""What is left in the file when a simulation ends, and whether anything still has to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from holdfast.store.story import Entry, entries_of

_UNFINISHED = """
    SELECT id, 'queued', held FROM holdfast_queued JOIN holdfast_job USING (seq) WHERE held IS NOT 'waiting'
    UNION ALL SELECT id, 'running', NULL FROM holdfast_running JOIN holdfast_job USING (seq)
    UNION ALL SELECT id, 'unknown', NULL FROM holdfast_parked JOIN holdfast_job USING (seq) WHERE state = 'unknown'"""
_PLACES = """
    SELECT id, 'queued' FROM holdfast_queued JOIN holdfast_job USING (seq)
    UNION ALL SELECT id, 'running' FROM holdfast_running JOIN holdfast_job USING (seq)
    UNION ALL SELECT id, state FROM holdfast_parked JOIN holdfast_job USING (seq)
    UNION ALL SELECT id, state FROM holdfast_over JOIN holdfast_job USING (seq)"""

_LEAKED = """
    SELECT held.kind, held.key, held.seq FROM (
        SELECT 'unique key' AS kind, key, seq FROM holdfast_unique
        UNION ALL SELECT 'turn', key, seq FROM holdfast_turn
        UNION ALL SELECT 'slot', key, seq FROM holdfast_slot) AS held
    WHERE held.seq NOT IN (SELECT seq FROM holdfast_queued UNION ALL SELECT seq FROM holdfast_running
        UNION ALL SELECT seq FROM holdfast_parked WHERE state = 'unknown')"""


def leaked(watcher: apsw.Connection) -> list[tuple[Any, ...]]:
    """Kind, key and row of what is held by jobs that are over, dead or forgotten: nobody will ever let go of it."""
    return watcher.execute(_LEAKED).fetchall()


def unfinished(watcher: apsw.Connection) -> list[tuple[Any, ...]]:
    """Id, state and reason of jobs that must still end. Dead ones have: a person may bring them back, or not."""
    return watcher.execute(_UNFINISHED).fetchall()


def remaining(watcher: apsw.Connection) -> dict[str, str]:
    """Where every job is: one in two places is told as both."""
    places: dict[str, str] = {}
    for job_id, state in watcher.execute(_PLACES):
        places[job_id] = f"{places[job_id]} and {state}" if job_id in places else state
    return places


def stories(watcher: apsw.Connection) -> dict[str, list[Entry]]:
    """What is kept of each job's claims."""
    rows = watcher.execute("SELECT id, story FROM holdfast_job")
    return {job_id: entries_of(text) for job_id, text in rows}


def file_size(path: str) -> int:
    """Of the database and its log."""
    return sum(Path(path + ending).stat().st_size for ending in ("", "-wal") if Path(path + ending).exists())
