"""Forget jobs that were over long ago: whole days are dropped as partitions, and room is made for the days ahead."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial

from holdfast.kernel.errors import StoreUnavailable
from holdfast.kernel.telemetry import note
from holdfast.store.edge import checked
from holdfast.store.postgres.forgetting import FIRST, PAGES, forget_steps, forget_stray_steps
from holdfast.store.postgres.subject import Home, Subject
from holdfast.store.records import Pruned
from holdfast.store.statements import Procedure, Statement

AHEAD = 3  # days after today that have a partition of their own
COUNTED = 8 * 2**20  # bytes of a day whose rows are counted before it is dropped
BATCH = 5_000  # rows deleted in one transaction
_PREFIX = "history_"
_TURNS = 3  # for a lock that others hold; after that, the next prune tries again
# Attaching and dropping lock the table for an instant. When finishing is in the way, we step back and come again.
_IMPATIENT = Statement("SELECT set_config('lock_timeout', '200ms', true)")


def look(keep: float) -> Procedure[tuple[date, datetime, list[date]]]:
    """Today, the moment before which everything may go, and the days that have a partition."""
    sql = """SELECT date_part('epoch', holdfast.now()), c.relname FROM (SELECT 1) one LEFT JOIN (
            pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid AND c.relname ~ '^history_[0-9]{8}$'
        ) ON i.inhparent = 'holdfast.history'::regclass"""
    rows = yield Statement(sql)
    now = datetime.fromtimestamp(rows[0][0], UTC)
    days = [date.fromisoformat(row[1].removeprefix(_PREFIX)) for row in rows if row[1] is not None]
    return now.date(), now - timedelta(seconds=keep), sorted(days)


def prepare(day: date) -> Procedure[int]:
    """Make a day's partition, unless rows of that day rest in the default one: those stay there until they are old."""
    yield _IMPATIENT
    start, end = _bounds(day)
    rows = yield Statement(
        f"SELECT 1 FROM holdfast.history_rest WHERE finished_at >= '{start}' AND finished_at < '{end}' LIMIT 1"
    )
    if rows:
        return 0
    yield Statement(
        f"CREATE TABLE IF NOT EXISTS {_table(day)} PARTITION OF holdfast.history "
        f"FOR VALUES FROM ('{start}') TO ('{end}')"
    )
    return 1


def _table(day: date) -> str:
    return f"holdfast.{_PREFIX}{day:%Y%m%d}"


def _bounds(day: date) -> tuple[str, str]:
    return f"{day.isoformat()} 00:00:00+00", f"{(day + timedelta(days=1)).isoformat()} 00:00:00+00"


def drop(day: date) -> Procedure[int]:
    yield _IMPATIENT
    table = _table(day)
    if not (yield Statement("SELECT 1 WHERE to_regclass($1::text) IS NOT NULL", (table,))):
        return 0  # another has dropped it
    number = yield from _size(table)
    yield Statement(f"DROP TABLE {table}")
    return number


def _size(table: str) -> Procedure[int]:
    """How many rows; of a large table what the planner thinks, since counting them would take longer than dropping."""
    rows = yield Statement("SELECT pg_relation_size($1::text::regclass)", (table,))
    if rows[0][0] <= COUNTED:
        rows = yield Statement(f"SELECT count(*) FROM {table}")
        return int(rows[0][0])
    rows = yield Statement(f"EXPLAIN (FORMAT JSON) SELECT FROM {table}")
    return int(json.loads(rows[0][0])[0]["Plan"]["Plan Rows"])


def sweep(table: str, keep: float) -> Procedure[int]:
    """At most one batch of old rows."""
    sql = f"""WITH gone AS (DELETE FROM {table} WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM {table} WHERE finished_at <= (SELECT holdfast.now()) - make_interval(secs => $1::float8)
            LIMIT {BATCH})) RETURNING id, steps_of),
        steps AS (DELETE FROM holdfast.step s USING gone g WHERE g.steps_of IS NOT NULL AND s.job_id = ANY(ARRAY[g.id]))
        SELECT count(*) FROM gone"""
    rows = yield Statement(sql, (float(keep),))
    number: int = rows[0][0]
    return number


@checked
class History(Subject):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        # Where forgetting their steps goes on: by day, and among all that have some.
        self._after: dict[date, str] = {}
        self._strays_after = FIRST

    async def prune(self, *, keep: float) -> Pruned:
        today, before, days = await self._database.read(partial(look, keep))
        await self._prepare(today, days)
        gone, more = 0, False
        for day in days:
            if datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1) <= before:
                if more := not await self._forget_steps(day):
                    break
                gone += await self._when_quiet(day, partial(drop, day))
        gone += await self._sweep(keep)
        return Pruned(gone, await self._forget_strays() or more)

    async def _forget_steps(self, day: date) -> bool:
        """Of the jobs of a day. A part each time, from where the last one ended; whether it is done with."""
        for _ in range(PAGES):
            make = partial(forget_steps, _table(day), self._after.get(day, FIRST))
            last = await self._database.atomic(make, repeatable=True)
            if last is None:
                self._after.pop(day, None)
                return True
            self._after[day] = last
        return False

    async def _forget_strays(self) -> bool:
        """One page each time, and more while there are any. Whether there may be."""
        for _ in range(PAGES):
            make = partial(forget_stray_steps, self._strays_after)
            last, missing = await self._database.write(make, repeatable=True)
            self._strays_after = last or FIRST
            if not missing or last is None:
                return False
        return True

    async def prepare(self) -> None:
        """Room for today and the days ahead."""
        today, _, days = await self._database.read(partial(look, 0.0))
        await self._prepare(today, days)

    async def _prepare(self, today: date, days: list[date]) -> None:
        for day in (today + timedelta(days=ahead) for ahead in range(AHEAD + 1)):
            if day not in days:
                await self._when_quiet(day, partial(prepare, day))

    async def _when_quiet(self, day: date, make: Callable[[], Procedure[int]]) -> int:
        for _ in range(_TURNS):
            try:
                return await self._database.atomic(make, repeatable=True)
            except StoreUnavailable as error:
                note("history.busy", day=str(day), error=str(error))
        return 0

    async def _sweep(self, keep: float) -> int:
        total = 0
        while gone := await self._database.write(partial(sweep, "holdfast.history_rest", keep)):
            total += gone
        return total
