"""The outbox: events are stored with the caller's rows, read in the order of their publication, and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.kernel.errors import CommitUnknown, StoreError
from holdfast.kernel.loops import PerLoop
from holdfast.kernel.portions import PORTION
from holdfast.kernel.show import storable
from holdfast.store.batching import Batcher
from holdfast.store.bell import LOG, OUTBOX
from holdfast.store.edge import checked
from holdfast.store.event_records import (
    LAG_COUNTED,
    READER_KEPT,
    Emitted,
    NewEvent,
    OutboxEvent,
    OutboxLag,
    OutboxState,
)
from holdfast.store.parts import in_parts
from holdfast.store.postgres import relaying
from holdfast.store.postgres.connection import BEGIN, IMPATIENT
from holdfast.store.postgres.emitting import emit
from holdfast.store.postgres.failures import Blocked, is_taken
from holdfast.store.postgres.relaying import COLUMNS, FITS, SIZES, to_event
from holdfast.store.postgres.rows import one_story
from holdfast.store.postgres.subject import Home, Subject
from holdfast.store.records import Lease
from holdfast.store.statements import Procedure, Statement
from holdfast.store.unknown import still_unknown

BATCH = 500  # events in one transaction of an operator
CLOCK_SLACK = 60.0  # seconds that the database's clock may have been set back
_TRIES = 5  # for a call whose answer was lost
_TOGETHER = 1_000  # events of several callers in one statement
_FEW = 500  # events of one caller that may share it


def log(*, after: int, before: int | None, since: float | None, limit: int) -> Procedure[list[OutboxEvent]]:
    if since is not None:
        after = max(after, (yield from published_before(since)))
    rows = yield Statement(_LOG, (after, before, since, limit, PORTION))
    return [to_event(row) for row in rows]


def log_with(column: str = "") -> str:
    """The statement, with one column more."""
    return f"""
SELECT {COLUMNS}{", " if column else ""}{column} FROM (
    SELECT *, {SIZES.format(order="position")} FROM (
        SELECT * FROM holdfast.outbox
        WHERE position > $1::bigint AND position < coalesce($2::bigint, 9223372036854775807)
            AND published_at >= to_timestamp(coalesce($3::float8, 0))
        ORDER BY position LIMIT $4) f) o
WHERE {FITS.format(room="$5::bigint")} ORDER BY o.position"""


_LOG = log_with()


def published_before(moment: float) -> Procedure[int]:
    """A position, all up to which were published before this moment, or 0. By halves: there is no index by time."""
    [(low, high)] = yield Statement(_ENDS)
    if low is None:
        return 0
    low -= 1
    while low < high:
        middle = (low + high) // 2
        rows = yield Statement(_FIRST_AFTER, (middle, high))
        if rows and rows[0][1] < moment - CLOCK_SLACK:
            low = rows[0][0]
        else:
            high = middle
    return int(low)


_ENDS = """
SELECT (SELECT position FROM holdfast.outbox WHERE position IS NOT NULL ORDER BY position LIMIT 1),
    (SELECT position FROM holdfast.outbox WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1)"""
_FIRST_AFTER = """
SELECT position, date_part('epoch', published_at) FROM holdfast.outbox
WHERE position > $1::bigint AND position <= $2::bigint ORDER BY position LIMIT 1"""


def are_at(position: int, ids: Sequence[str]) -> Procedure[bool]:
    """Whether the log still has these events, the last of them at the position.

    Positions are committed in haste: a crash of the server may have given them to others.
    """
    rows = yield Statement(_ARE_AT, (position - len(ids), position))
    return [row[0] for row in rows] == list(ids)


_ARE_AT = """
SELECT id::text FROM holdfast.outbox WHERE position > $1::bigint AND position <= $2::bigint ORDER BY position"""


def get(event_id: str) -> Procedure[OutboxEvent | None]:
    rows = yield Statement(f"SELECT {COLUMNS} FROM holdfast.outbox o WHERE o.id = $1::uuid", (event_id,))
    return to_event(rows[0]) if rows else None


def find(*, state: OutboxState | None, limit: int, **wanted: str | None) -> Procedure[list[OutboxEvent]]:
    """Newest first. What waits is in two indexes: what is held, and what is not."""
    given = {column: value for column, value in wanted.items() if value is not None}
    tests = [f"o.{column} = ${place}::text" for place, column in enumerate(given, 2)]
    order = "o.seq DESC"
    if "key" in given:
        order = "o.version DESC"  # it is the same, and only the index by key has it
    elif "correlation_id" in given:
        place = 2 + list(given).index("correlation_id")
        tests[place - 2], order = one_story("o", "seq", place)
    found: list[OutboxEvent] = []
    for part in _STATES[state]:
        where = " AND ".join([*tests, *part]) or "true"
        sql = f"SELECT {COLUMNS} FROM holdfast.outbox o WHERE {where} ORDER BY {order} LIMIT $1"
        found += map(to_event, (yield Statement(sql, (limit, *given.values()))))
    found.sort(key=lambda event: event.seq, reverse=True)
    return found[:limit]


_STATES: dict[OutboxState | None, list[list[str]]] = {
    None: [[]],
    "published": [["o.state = 'published'"]],
    "waiting": [["o.state = 'waiting'", "NOT o.held"], ["o.state = 'waiting'", "o.held"]],
    "quarantined": [["o.state = 'quarantined'", "o.held"]],
}


def version(key: str) -> Procedure[int]:
    rows = yield Statement("SELECT version FROM holdfast.event_key WHERE key = $1::text", (key,))
    return int(rows[0][0]) if rows else 0


def lag() -> Procedure[OutboxLag]:
    [row] = yield Statement(_LAG, (LAG_COUNTED,))
    ready, held, quarantined, oldest, position = row
    oldest = None if oldest is None else max(0.0, oldest)
    return OutboxLag(min(ready + held, LAG_COUNTED), oldest, quarantined, position)


_LAG = """
SELECT (SELECT count(*) FROM (SELECT FROM holdfast.outbox WHERE state = 'waiting' AND NOT held LIMIT $1) w),
    (SELECT count(*) FROM (SELECT FROM holdfast.outbox WHERE state = 'waiting' AND held LIMIT $1) w),
    (SELECT count(*) FROM (SELECT FROM holdfast.outbox WHERE state = 'quarantined' AND held LIMIT $1) w),
    date_part('epoch', holdfast.now() - least(
        (SELECT time FROM holdfast.outbox WHERE state = 'waiting' AND NOT held ORDER BY seq LIMIT 1),
        (SELECT time FROM holdfast.outbox WHERE state = 'waiting' AND held ORDER BY seq LIMIT 1))),
    (SELECT value FROM holdfast.event_position)"""


def is_kept(start: int) -> Procedure[bool]:
    """Whether the log still begins there: what is published behind it was not pruned since somebody looked. Nor is it until our commit."""
    yield Statement(f"SELECT pg_advisory_xact_lock_shared({_READING}, 0)")
    return bool((yield Statement(_KEPT, (start,))))


_READING = 0x486F_0004  # the class of the lock of those who begin to read and of who prunes; see locks.py
_KEPT = """
SELECT 1 FROM holdfast.event_position
WHERE $1::bigint >= value OR EXISTS (SELECT FROM holdfast.outbox WHERE position = $1::bigint + 1)"""


def prune(*, keep: float, limit: int) -> Procedure[int]:
    """Nobody begins to read meanwhile: who has begun before is seen, and who begins afterwards sees what is gone."""
    yield Statement(f"SELECT pg_advisory_xact_lock({_READING}, 0)")
    return len((yield Statement(_PRUNE, (float(keep), limit, READER_KEPT))))


# Only the first few by position are looked at: what comes after one that is too young is younger.
_PRUNE = """
DELETE FROM holdfast.outbox WHERE seq = ANY(ARRAY(
    SELECT o.seq FROM (
        SELECT seq, position, published_at FROM holdfast.outbox
        WHERE position IS NOT NULL ORDER BY position LIMIT $2) o
    WHERE o.published_at <= holdfast.now() - make_interval(secs => $1::float8)
        AND o.position <= coalesce((
            SELECT min(position) FROM holdfast.event_group
            WHERE seen_at > holdfast.now() - make_interval(secs => $3::float8)), o.position)
        AND o.position <= coalesce((
            SELECT min(CASE WHEN history THEN start ELSE position END) FROM holdfast.view
            WHERE state <> 'old' AND seen_at > holdfast.now() - make_interval(secs => $3::float8)), o.position)))
RETURNING seq"""


@checked
class Outbox(Subject):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self._batches: PerLoop[Batcher[NewEvent, Emitted]] = PerLoop(
            lambda: Batcher(self._emit_batch, limit=_TOGETHER, name="emit")
        )

    async def emit(
        self, events: Sequence[NewEvent], *, tx: object | None = None, again: bool = False
    ) -> list[Emitted]:
        if not events:
            return []
        if (executor := await self._executor(tx)) is not None:
            answers = await executor.run(emit(events, again=again))
        else:
            answers = await self._emit(events, again=again)
        self._home.hint((OUTBOX,), tx=tx)
        return answers

    async def _emit(self, events: Sequence[NewEvent], *, again: bool) -> list[Emitted]:
        self._database.pool.check()
        if again:
            return await self._repeated(events)
        try:
            if len(events) <= _FEW:
                return await self._together(events)
            return await self._settled(events)
        except StoreError as error:
            if not is_taken(error):
                raise
        return await self._repeated(events)  # another stores one of these ids at this very moment

    async def _together(self, events: Sequence[NewEvent]) -> list[Emitted]:
        """With those of others, unless another's open transaction has one of these keys: that is waited for alone."""
        try:
            return await self._batches.get().add(events)
        except Blocked:
            return await self._database.patience.wait(partial(self._settled, events, begin=IMPATIENT))

    async def _emit_batch(self, events: Sequence[NewEvent]) -> list[Emitted]:
        try:
            return await self._database.write(partial(emit, events, impatient=True))
        except CommitUnknown as unknown:
            return await still_unknown(unknown, self._repeated(events))

    async def _settled(self, events: Sequence[NewEvent], *, begin: str = BEGIN) -> list[Emitted]:
        try:
            return await self._database.atomic(partial(emit, events), begin=begin)
        except CommitUnknown as unknown:
            return await still_unknown(unknown, self._repeated(events))

    async def _repeated(self, events: Sequence[NewEvent]) -> list[Emitted]:
        """Ids are the caller's, so a call whose answer was lost is simply made again."""
        for _ in range(_TRIES - 1):
            try:
                return await self._database.atomic(partial(emit, events, again=True))
            except CommitUnknown as unknown:
                lost = unknown
        raise lost

    async def waiting(self, lease: Lease, *, limit: int) -> list[OutboxEvent]:
        """Most of the time nothing has failed, and reading is enough."""
        found = await self._database.read(partial(relaying.look, lease, limit=limit))
        while found is None:
            found = await self._database.atomic(
                partial(relaying.waiting, lease, limit=limit), repeatable=True
            )
        return found

    async def stamp(self, lease: Lease, ids: Sequence[str]) -> list[int] | None:
        positions = await self._database.write(partial(relaying.stamp, lease, ids), repeatable=True)
        if positions:
            self._home.hint((LOG,))
        return positions

    async def failed(
        self, lease: Lease, event_id: str, error: str, *, rest: float | None, blocks: bool = True
    ) -> bool:
        make = partial(relaying.failed, lease, event_id, error=storable(error), rest=rest, blocks=blocks)
        return await self._database.atomic(make)

    async def log(
        self, *, after: int = 0, before: int | None = None, since: float | None = None, limit: int = 500
    ) -> list[OutboxEvent]:
        return await self._database.read(partial(log, after=after, before=before, since=since, limit=limit))

    async def get(self, event_id: str) -> OutboxEvent | None:
        return await self._database.read(partial(get, event_id))

    async def find(
        self,
        *,
        state: OutboxState | None = None,
        type: str | None = None,  # noqa: A002  the word of the envelope
        key: str | None = None,
        correlation_id: str | None = None,
        limit: int = 100,
    ) -> list[OutboxEvent]:
        make = partial(find, state=state, type=type, key=key, correlation_id=correlation_id, limit=limit)
        return await self._database.read(make)

    async def version(self, key: str, *, tx: object | None = None) -> int:
        if tx is not None:
            return await (await self._home.adopt(tx)).run(version(key))
        return await self._database.read(partial(version, key))

    async def requeue(self, ids: Sequence[str], *, actor: str) -> list[bool]:
        answers = await in_parts(
            ids, BATCH, lambda part: self._database.atomic(partial(relaying.requeue, part, actor=actor))
        )
        self._home.hint((OUTBOX,))
        return answers

    async def drop(self, ids: Sequence[str], *, actor: str, reason: str) -> list[bool]:
        reason = storable(reason)
        answers = await in_parts(
            ids,
            BATCH,
            lambda part: self._database.atomic(partial(relaying.drop, part, actor=actor, reason=reason)),
        )
        self._home.hint((OUTBOX,))
        return answers

    async def lag(self) -> OutboxLag:
        return await self._database.read(lag)

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._database.atomic(partial(prune, keep=keep, limit=limit), repeatable=True)
