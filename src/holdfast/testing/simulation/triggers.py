"""Triggers that write every committed change of a row to a log, with time and process. Knows the tables, no meaning.

A client's history has gaps (it was killed, its answer was lost); this log has none, and what is rolled back leaves no
trace in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

WIDTH = 20  # values of a row that the log keeps
# A business table and a fenced register, as a user would have them, and the log.
_VALUES = ", ".join(f"v{place}" for place in range(WIDTH))
_TABLES = f"""
CREATE TABLE sim_row (op INTEGER NOT NULL, kind TEXT NOT NULL, job_id TEXT);
CREATE TABLE sim_register (name TEXT PRIMARY KEY, token INTEGER NOT NULL, writer TEXT NOT NULL);
INSERT INTO sim_register VALUES ('a', 0, ''), ('b', 0, '');
CREATE TABLE sim_handled (handler TEXT NOT NULL, event_id TEXT NOT NULL, job_id TEXT, token INTEGER);
CREATE TABLE sim_log (n INTEGER PRIMARY KEY, mark INTEGER, what TEXT,
    {_VALUES});
"""  # noqa: S608  the only text put into it is our own
# What is logged: the table, on which events, and which columns (OLD for a delete, else NEW). That a row left the table
# of one state is not logged: the row in the table of the next state says so.
LOGGED = {
    "job": (
        "holdfast_job",
        "INSERT UPDATE",
        "seq id queue args expires_at unique_key ordering_key concurrency_key concurrency_limit tenant priority guard interruptions strikes task correlation_id causation_id trace deadline generation",
    ),
    "queued": ("holdfast_queued", "INSERT UPDATE", "seq rank held attempt suspect token run_at"),
    "running": ("holdfast_running", "INSERT UPDATE", "seq token lease_until worker alone attempt rank stop"),
    "parked": ("holdfast_parked", "INSERT", "seq state token attempt reason"),
    "over": ("holdfast_over", "INSERT DELETE", "seq state token attempt reason finished_at"),
    "slot": ("holdfast_slot", "INSERT DELETE", "seq key slot"),
    "lease": ("holdfast_lease", "INSERT UPDATE DELETE", "name owner token until"),
    "tick": ("holdfast_tick", "INSERT UPDATE", "schedule nominal job_id"),
    "key": ("holdfast_key", "INSERT UPDATE DELETE", "key token until response fingerprint"),
    "queue": ("holdfast_queue", "INSERT DELETE", "name"),
    "tenant": ("holdfast_tenant", "INSERT UPDATE", "key resumed_at"),
    "audit": ("holdfast_audit", "INSERT", "subject action"),
    "step": (
        "holdfast_step",
        "INSERT UPDATE",
        "seq name token kind progress result number generation plan tries",
    ),
    "row": ("sim_row", "INSERT", "op kind job_id"),
    "register": ("sim_register", "UPDATE", "name token writer"),
}
# The same of tables whose rows the ledger tells as they are.
TOLD = {
    "outbox": (
        "holdfast_outbox",
        "INSERT UPDATE DELETE",
        "seq id type key version data time correlation_id causation_id trace state position tries error published_at",
    ),
    "group": ("holdfast_event_group", "INSERT UPDATE DELETE", "name position"),
    "member": ("holdfast_event_member", "INSERT UPDATE DELETE", "group_name member hears until"),
    "inbox": ("holdfast_inbox", "INSERT UPDATE DELETE", "group_name event_id job_id handled_at"),
    "stray": ("holdfast_stray", "INSERT DELETE", "id transport group_name raw reason"),
    "view": ("holdfast_view", "INSERT UPDATE DELETE", "view generation state start position history"),
    "view_row": (
        "holdfast_view_row",
        "INSERT UPDATE DELETE",
        "view generation key data source version position",
    ),
    "view_aside": ("holdfast_view_aside", "INSERT UPDATE DELETE", "view generation position event_id key"),
    "cache": ("holdfast_cache", "INSERT UPDATE DELETE", "key value token"),
    "handled": ("sim_handled", "INSERT", "handler event_id job_id token"),
    "saga": (
        "holdfast_saga",
        "INSERT UPDATE DELETE",
        "seq id job_id state undoing started_at asked pivot error parent",
    ),
    "saga_wait": ("holdfast_saga_wait", "INSERT DELETE", "saga step kind name key"),
    "alert": ("holdfast_alert", "INSERT UPDATE", "id kind cause number quiet_since ended_at"),
    "alert_cause": ("holdfast_alert_cause", "INSERT UPDATE DELETE", "kind cause number"),
    "saga_signal": ("holdfast_saga_signal", "INSERT UPDATE", "seq saga name value taken_by"),
}


def install(path: str) -> None:
    """Add the tables and triggers to a migrated file."""
    connection = apsw.Connection(path)
    connection.execute(_TABLES)
    for name, (table, events, columns) in (LOGGED | TOLD).items():
        for event in events.split():
            connection.execute(_trigger(name, table, columns.split(), event))
    connection.close()


def _trigger(name: str, table: str, columns: list[str], event: str) -> str:
    row = "OLD" if event == "DELETE" else "NEW"
    values = ", ".join(f"{row}.{column}" for column in columns)
    places = ", ".join(f"v{place}" for place in range(len(columns)))
    return f"""
CREATE TRIGGER sim_{name}_{event.lower()} AFTER {event} ON {table} BEGIN
    INSERT INTO sim_log (mark, what, {places}) VALUES (sim_mark(), '{name} {event}', {values});
END;"""  # noqa: S608  the only text put into it is our own


class Marks:
    """Who and when, for each change: the triggers ask for a mark, and the reader gives its meaning back."""

    def __init__(self, now: Callable[[], tuple[float, float, int]]) -> None:
        self._now = now
        self._marks: list[tuple[float, float, int, str, int]] = []
        self._transactions = (
            0  # one writes at a time: what is written after the last that began is of that one
        )
        self._commits: dict[int, tuple[float, int]] = {}  # by transaction: virtual time and step

    def lend(self, connection: apsw.Connection, process: str) -> None:
        """Give the connection the function that the triggers call."""

        def mark(*_: Any) -> int:
            self._marks.append((*self._now(), process, self._transactions))
            return len(self._marks) - 1

        # Innocuous: a store may distrust the functions of a schema.
        connection.create_scalar_function("sim_mark", mark, 0, flags=apsw.SQLITE_INNOCUOUS)

    def began(self) -> None:
        """Somebody has the write lock."""
        self._transactions += 1

    def ended(self) -> None:
        """It commits what it has written."""
        self._commits[self._transactions] = self._now()[1:]

    def committed(self, transaction: int) -> tuple[float, int]:
        """When that was: virtual time and step."""
        return self._commits[transaction]

    def read(self, connection: apsw.Connection) -> list[tuple[Any, ...]]:
        """The log: database's time, virtual time, step, process and transaction; what; values."""
        rows = connection.execute("SELECT * FROM sim_log ORDER BY n")
        return [(self._marks[row[1]], row[2], row[3:]) for row in rows]
