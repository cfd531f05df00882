"""What could break a promise of a store on PostgreSQL: the server, its sessions, its room, and what waits in the tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from holdfast.kernel.clock import now
from holdfast.kernel.errors import SchemaError
from holdfast.store.edge import checked
from holdfast.store.findings import Finding, bad, judge, ok, warn
from holdfast.store.postgres import schema
from holdfast.store.postgres.backlog import backlog
from holdfast.store.postgres.connection import connect
from holdfast.store.postgres.failures import FAILURES, translate
from holdfast.store.postgres.low_water import MANY
from holdfast.store.postgres.url import Target

OLDEST_SERVER = 140_000
IDLE_TOO_LONG = 60.0  # seconds that a transaction may do nothing
SNAPSHOT_TOO_OLD = 600.0  # seconds, and
SNAPSHOT_TOO_FAR = 1_000_000  # transactions, for which dead rows may be kept for someone
SKEW = 2.0  # seconds between two clocks; nothing is decided by ours, but people compare them

BESIDE_POOL = 3  # connections of a worker process beside its pool: two renew, one listens
_PATIENCE = 10.0  # seconds for one question


@checked
class Diagnosis:
    def __init__(self, target: Target) -> None:
        self._target = msgspec.structs.replace(target, command_timeout=_PATIENCE)

    async def examine(self, *, processes: int = 1) -> tuple[Finding, ...]:
        """On a connection of its own; a question that fails is a finding, and the others are still asked."""
        try:
            connection = await connect(self._target)
        except FAILURES as error:
            return (bad("connection", str(translate(error)), "Is the server up, and the URL right?"),)
        try:
            needed = processes * (self._target.pool_size + BESIDE_POOL)
            return tuple(await _ask_all(connection, needed))
        finally:
            await connection.close()


async def _ask_all(connection: Any, needed: int) -> list[Finding]:
    findings: list[Finding] = []

    async def ask(check: str, question: Callable[[Any], Awaitable[Sequence[Finding]]]) -> None:
        try:
            findings.extend(await question(connection))
        except FAILURES as error:
            findings.append(
                warn(check, f"This could not be asked: {translate(error)}", "See the server's log.")
            )

    await ask("server", _server)
    await ask("clock", _clock)
    await ask("sessions", _idle)
    await ask("snapshots", _snapshots)
    await ask("connections", lambda connection: _room(connection, needed))
    await ask("tables", _tables)
    if findings[-1].check == "tables" and findings[-1].todo is None:
        await ask("bloat", _bloat)
        await ask("waiting", _waiting)
    return findings


# --- the server ---


async def _server(connection: Any) -> list[Finding]:
    names = (
        "server_version_num server_version fsync synchronous_commit full_page_writes transaction_read_only"
    )
    sql = "SELECT name, setting FROM pg_settings WHERE name = ANY($1::text[])"
    settings = {row[0]: row[1] for row in await connection.fetch(sql, names.split())}
    return [_version(settings), _durability(settings), await _role(connection, settings)]


def _version(settings: dict[str, str]) -> Finding:
    shown = f"PostgreSQL {settings['server_version']}"
    if int(settings["server_version_num"]) >= OLDEST_SERVER:
        return ok("server", f"{shown}.")
    return bad("server", f"{shown} is too old.", f"Use version {OLDEST_SERVER // 10_000} or newer.")


def _durability(settings: dict[str, str]) -> Finding:
    off = [name for name in ("fsync", "synchronous_commit", "full_page_writes") if settings[name] == "off"]
    if not off:
        return ok("durability", "What is committed is on the disk.")
    return bad(
        "durability",
        f"{', '.join(off)} {'is' if len(off) == 1 else 'are'} off: an acknowledged job can be lost in a crash.",
        "Switch it on, at least synchronous_commit for our role (ALTER ROLE … SET synchronous_commit = on).",
    )


async def _role(connection: Any, settings: dict[str, str]) -> Finding:
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        return bad("writes", "This server is a standby, and takes no writes.", "Name the primary in the URL.")
    if settings["transaction_read_only"] == "on":
        todo = "Set default_transaction_read_only = off for our role or database."
        return bad("writes", "Transactions are read-only here.", todo)
    return ok("writes", "This server takes writes.")


async def _clock(connection: Any) -> list[Finding]:
    before = now()
    theirs: float = await connection.fetchval("SELECT date_part('epoch', clock_timestamp())")
    after = now()
    skew = theirs - (before + after) / 2
    shown = f"The server's clock is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
    if abs(skew) <= SKEW + (after - before) / 2:
        return [ok("clock", f"{shown}.")]
    todo = "Leases are safe, since only the server's counts; but set both by NTP, or people misread times."
    return [warn("clock", f"{shown}.", todo)]


# --- who is in the way ---

# Of other databases neither counts: rows are kept for readers of the same one.
_IDLE = """
SELECT pid, coalesce(nullif(application_name, ''), usename::text, '?'), date_part('epoch', clock_timestamp() - state_change)
FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()
    AND state_change < clock_timestamp() - make_interval(secs => $1::float8)
ORDER BY 3 DESC"""
_SNAPSHOTS = """
SELECT 'session ' || pid || ' (' || coalesce(nullif(application_name, ''), usename::text, '?') || ')',
    coalesce(date_part('epoch', clock_timestamp() - xact_start), 0), age(backend_xmin),
    'SELECT pg_terminate_backend(' || pid || ')'
FROM pg_stat_activity
WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
UNION ALL
SELECT 'prepared transaction ' || gid, date_part('epoch', clock_timestamp() - prepared), age(transaction),
    'ROLLBACK PREPARED ' || quote_literal(gid)
FROM pg_prepared_xacts WHERE database = current_database()
UNION ALL
SELECT 'replication slot ' || slot_name || CASE WHEN active THEN '' ELSE ' (nobody uses it)' END, 0,
    greatest(age(xmin), age(catalog_xmin)), 'SELECT pg_drop_replication_slot(' || quote_literal(slot_name) || ')'
FROM pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
ORDER BY 3 DESC"""
_SEES_ALL = "SELECT pg_has_role('pg_read_all_stats', 'USAGE')"


async def _idle(connection: Any) -> list[Finding]:
    rows = await connection.fetch(_IDLE, IDLE_TOO_LONG)
    if not rows:
        seen = "" if await connection.fetchval(_SEES_ALL) else " (only those of our own role can be seen)"
        return [ok("sessions", f"No session is idle in a transaction for over {IDLE_TOO_LONG:g} s{seen}.")]
    pid, name, seconds = rows[0]
    return [
        warn(
            "sessions",
            f"Sessions idle in a transaction: {len(rows):,}; the longest for {seconds:.0f} s: {pid} ({name}).",
            f"Mend that program, or end it: SELECT pg_terminate_backend({pid}).",
        )
    ]


async def _snapshots(connection: Any) -> list[Finding]:
    rows = await connection.fetch(_SNAPSHOTS)
    old = [row for row in rows if row[1] > SNAPSHOT_TOO_OLD or row[2] > SNAPSHOT_TOO_FAR]
    if not old:
        return [ok("snapshots", "Nobody keeps dead rows from being cleaned away for long.")]
    who, seconds, age, todo = old[0]
    since = f"since {seconds:.0f} s, " if seconds else ""
    found = f"{who} keeps dead rows from being cleaned away: {since}{age:,} transactions"
    more = f"; {len(old) - 1} more do" if len(old) > 1 else ""
    return [warn("snapshots", f"{found}{more}.", f"When nobody needs it: {todo}.")]


async def _room(connection: Any, needed: int) -> list[Finding]:
    rows = await connection.fetch(_ROOM)
    most, used = rows[0]
    found = f"New worker processes need {needed:,}; in use are {used:,} of {most:,}."
    if needed <= most - used:
        return [ok("connections", found)]
    todo = "Raise max_connections, lower pool_size in the URL, run fewer processes, or use PgBouncer."
    return [(bad if needed > most else warn)("connections", found, todo)]


# Those kept for superusers are not for us. Our own, here, is gone in a moment.
_ROOM = """
SELECT current_setting('max_connections')::int
    - (SELECT coalesce(sum(setting::int), 0) FROM pg_settings
       WHERE name IN ('superuser_reserved_connections', 'reserved_connections'))::int,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())::int"""


# --- the tables ---


async def _tables(connection: Any) -> list[Finding]:
    try:
        missing = await schema.find_pending(connection)
    except SchemaError as error:
        return [bad("tables", str(error), "Use the Holdfast that fits.")]
    if missing:
        names = ", ".join(migration.name for migration in missing)
        return [bad("tables", f"The tables lack the migrations {names}.", "Run: holdfast migrate.")]
    return [ok("tables", "All migrations are applied.")]


async def _bloat(connection: Any) -> list[Finding]:
    sql = "SELECT n_live_tup, n_dead_tup FROM pg_stat_all_tables WHERE relid = 'holdfast.job'::regclass"
    live, dead = (await connection.fetch(sql))[0]
    found = f"holdfast.job has about {live:,} rows and {dead:,} dead ones."
    if dead < MANY or dead < live:
        return [ok("bloat", found)]
    todo = "Look for old snapshots and idle sessions above, then: VACUUM holdfast.job."
    return [warn("bloat", found, todo)]


async def _waiting(connection: Any) -> list[Finding]:
    return list(judge(await backlog(connection)))
