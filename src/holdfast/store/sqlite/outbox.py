"""The outbox: events are stored with the caller's rows, read in the order of their publication, and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.kernel.errors import CommitUnknown, NotOpen, StoreError
from holdfast.kernel.loops import PerLoop
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
from holdfast.store.records import Lease
from holdfast.store.sqlite import relaying
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.relaying import COLUMNS, portion, to_event
from holdfast.store.sqlite.subject import File, Subject

BATCH = 500  # events in one transaction of an operator, so that nobody waits long for the write lock
_TRIES = 5  # for a call whose answer was lost
_TOGETHER = 500  # events of several callers in one commit
_FEW = 100  # events of one caller that may share it
_NEWER = """
    INSERT INTO holdfast_event_key (key, version) VALUES (?, ?)
    ON CONFLICT (key) DO UPDATE SET version = version + excluded.version RETURNING version"""
_EVENT = """
    INSERT INTO holdfast_outbox (id, type, key, version, data, time, correlation_id, causation_id, trace)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""


def emit(db: Db, events: Sequence[NewEvent]) -> list[Emitted]:
    """Store all of them. An id that is known is not stored again."""
    versions = _known(db, events)
    new = list({event.id: event for event in reversed(events) if event.id not in versions}.values())[::-1]
    next_of = {key: _next(db, key, number) for key, number in _counted(new).items()}
    for event in new:
        versions[event.id] = None if event.key is None else next_of[event.key]
        if event.key is not None:
            next_of[event.key] += 1
    db.run_many(_EVENT, [_row(event, versions[event.id], db.now) for event in new])
    return [Emitted(event.id, versions[event.id]) for event in events]


def _known(db: Db, events: Sequence[NewEvent]) -> dict[str, int | None]:
    if len(events) == 1:
        return dict(db.rows("SELECT id, version FROM holdfast_outbox WHERE id = ?", events[0].id))
    ids = '["' + '","'.join([event.id for event in events]) + '"]'  # of hexadecimal digits
    sql = "SELECT id, version FROM holdfast_outbox WHERE id IN (SELECT value FROM json_each(?))"
    return dict(db.rows(sql, ids))


def _counted(events: Sequence[NewEvent]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for event in events:
        if event.key is not None:
            counted[event.key] = counted.get(event.key, 0) + 1
    return counted


def _next(db: Db, key: str, number: int) -> int:
    """The first of so many new versions of the key."""
    last: int = db.value(_NEWER, key, number)
    return last - number + 1


def _row(event: NewEvent, version: int | None, now: float) -> tuple[object, ...]:
    return (
        event.id, event.type, event.key, version, event.data, now,
        event.correlation_id, event.causation_id, event.trace,
    )  # fmt: skip


def log(db: Db, *, after: int, before: int | None, since: float | None, limit: int) -> list[OutboxEvent]:
    if since is not None:
        after = max(after, published_before(db, since))
    sql = f"""SELECT {COLUMNS} FROM holdfast_outbox
        WHERE position > ?1 AND position < ?2 AND published_at >= ?3 ORDER BY position LIMIT ?4"""
    upto = 2**63 - 1 if before is None else before
    with db.each(sql, after, upto, since or 0.0, limit) as rows:
        return portion(rows, limit)


def published_before(db: Db, moment: float) -> int:
    """A position, all up to which were published before this moment, or 0. By halves: there is no index by time."""
    row = db.row("SELECT min(position), max(position) FROM holdfast_outbox WHERE position IS NOT NULL")
    assert row is not None
    low, high = row
    if low is None:
        return 0
    low -= 1
    sql = """SELECT position, published_at FROM holdfast_outbox
        WHERE position > ? AND position <= ? ORDER BY position LIMIT 1"""
    while low < high:
        middle = (low + high) // 2
        found = db.row(sql, middle, high)
        if found is not None and found[1] < moment - relaying.CLOCK_SLACK:
            low = found[0]
        else:
            high = middle
    return int(low)


def are_at(db: Db, position: int, ids: Sequence[str]) -> bool:
    """Whether the log still has these events, the last of them at the position."""
    sql = "SELECT id FROM holdfast_outbox WHERE position > ? AND position <= ? ORDER BY position"
    return [row[0] for row in db.rows(sql, position - len(ids), position)] == list(ids)


def get(db: Db, event_id: str) -> OutboxEvent | None:
    row = db.row(f"SELECT {COLUMNS} FROM holdfast_outbox WHERE id = ?", event_id)
    return None if row is None else to_event(row)


def find(db: Db, *, state: OutboxState | None, limit: int, **wanted: str | None) -> list[OutboxEvent]:
    """Newest first. What waits is in two indexes: what is held, and what is not."""
    given = {column: value for column, value in wanted.items() if value is not None}
    tests = [f"{column} = :{column}" for column in given]
    order = "version" if "key" in given else "seq"  # of one key it is the same, and the index by key has it
    parts: list[list[str]] = {
        None: [list[str]()],
        "published": [["state = 'published'"]],
        "waiting": [["state = 'waiting'", "held = 0"], ["state = 'waiting'", "held = 1"]],
        "quarantined": [["state = 'quarantined'", "held = 1"]],
    }[state]
    found: list[OutboxEvent] = []
    for part in parts:
        where = " AND ".join([*tests, *part]) or "true"
        sql = f"SELECT {COLUMNS} FROM holdfast_outbox WHERE {where} ORDER BY {order} DESC LIMIT :limit"
        found += map(to_event, db.connection.execute(sql, {**given, "limit": limit}).fetchall())
    found.sort(key=lambda event: event.seq, reverse=True)
    return found[:limit]


def version(db: Db, key: str) -> int:
    return db.value("SELECT version FROM holdfast_event_key WHERE key = ?", key) or 0


def lag(db: Db) -> OutboxLag:
    row = db.row(_LAG, LAG_COUNTED)
    assert row is not None
    ready, held, quarantined, first, first_held, position = row
    times = [time for time in (first, first_held) if time is not None]
    oldest = max(0.0, db.now - min(times)) if times else None
    return OutboxLag(min(ready + held, LAG_COUNTED), oldest, quarantined, position)


_LAG = """
    SELECT (SELECT count(*) FROM
            (SELECT 1 FROM holdfast_outbox WHERE state = 'waiting' AND held = 0 LIMIT ?1)),
        (SELECT count(*) FROM (SELECT 1 FROM holdfast_outbox WHERE state = 'waiting' AND held = 1 LIMIT ?1)),
        (SELECT count(*) FROM (SELECT 1 FROM holdfast_outbox WHERE state = 'quarantined' AND held = 1 LIMIT ?1)),
        (SELECT time FROM holdfast_outbox WHERE state = 'waiting' AND held = 0 ORDER BY seq LIMIT 1),
        (SELECT time FROM holdfast_outbox WHERE state = 'waiting' AND held = 1 ORDER BY seq LIMIT 1),
        (SELECT value FROM holdfast_counter WHERE name = 'position')"""


def prune(db: Db, *, keep: float, limit: int) -> int:
    return db.run(_PRUNE, db.now - keep, limit, db.now - READER_KEPT)


# Only the first few by position are looked at: what comes after one that is too young is younger.
_PRUNE = """
    DELETE FROM holdfast_outbox WHERE seq IN (
        SELECT seq FROM (
            SELECT seq, position, published_at FROM holdfast_outbox
            WHERE position IS NOT NULL ORDER BY position LIMIT ?2)
        WHERE published_at <= ?1
            AND position <= coalesce((SELECT min(position) FROM holdfast_event_group WHERE seen_at > ?3), position)
            AND position <= coalesce((SELECT min(iif(history, start, position)) FROM holdfast_view
                WHERE state <> 'old' AND seen_at > ?3), position))"""


@checked
class Outbox(Subject):
    def __init__(self, file: File) -> None:
        super().__init__(file)
        self._batches: PerLoop[Batcher[NewEvent, Emitted]] = PerLoop(
            lambda: Batcher(self._emit, limit=_TOGETHER, name="emit")
        )

    async def emit(
        self,
        events: Sequence[NewEvent],
        *,
        tx: object | None = None,
        again: bool = False,  # noqa: ARG002  an id is known here for as long as its event is kept
    ) -> list[Emitted]:
        if not events:
            return []
        if tx is not None:
            answers = await self._file.write(partial(emit, events=events), tx=tx)
        elif len(events) <= _FEW:
            self._file.check_free()  # here: the batch is another task's, which would wait for its own caller
            answers = await self._batches.get().add(events)
        else:
            answers = await self._emit(events)
        self._file.hint((OUTBOX,), tx=tx)
        return answers

    async def rest(self) -> None:
        """Wait for what callers of this loop have asked for together."""
        await self._batches.get().rest()

    async def _emit(self, events: Sequence[NewEvent]) -> list[Emitted]:
        lost: CommitUnknown | None = None
        for _ in range(_TRIES):
            try:
                return await self._file.write(partial(emit, events=events))
            except CommitUnknown as unknown:
                lost = unknown  # the ids are the caller's, so the call is simply made again
            except (StoreError, NotOpen) as error:
                if lost is None:
                    raise
                raise lost from error  # "nothing was stored" would be a guess: the try before may have committed
        assert lost is not None
        raise lost

    async def waiting(self, lease: Lease, *, limit: int) -> list[OutboxEvent]:
        """Most of the time nothing has failed, and reading is enough."""
        found = await self._file.read(partial(relaying.look, lease=lease, limit=limit))
        while found is None:
            found = await self._file.write(
                partial(relaying.waiting, lease=lease, limit=limit), repeatable=True
            )
        return found

    async def stamp(self, lease: Lease, ids: Sequence[str]) -> list[int] | None:
        call = partial(relaying.stamp, lease=lease, ids=ids)
        positions = await self._file.write(call, repeatable=True)
        if positions:
            self._file.hint((LOG,))
        return positions

    async def failed(
        self, lease: Lease, event_id: str, error: str, *, rest: float | None, blocks: bool = True
    ) -> bool:
        call = partial(
            relaying.failed, lease=lease, event_id=event_id, error=storable(error), rest=rest, blocks=blocks
        )
        return await self._file.write(call)

    async def log(
        self, *, after: int = 0, before: int | None = None, since: float | None = None, limit: int = 500
    ) -> list[OutboxEvent]:
        return await self._file.read(partial(log, after=after, before=before, since=since, limit=limit))

    async def get(self, event_id: str) -> OutboxEvent | None:
        return await self._file.read(partial(get, event_id=event_id))

    async def find(
        self,
        *,
        state: OutboxState | None = None,
        type: str | None = None,  # noqa: A002  the word of the envelope
        key: str | None = None,
        correlation_id: str | None = None,
        limit: int = 100,
    ) -> list[OutboxEvent]:
        call = partial(find, state=state, type=type, key=key, correlation_id=correlation_id, limit=limit)
        return await self._file.read(call)

    async def version(self, key: str, *, tx: object | None = None) -> int:
        call = partial(version, key=key)
        return await (self._file.read(call) if tx is None else self._file.write(call, tx=tx))

    async def requeue(self, ids: Sequence[str], *, actor: str) -> list[bool]:
        answers = await in_parts(
            ids, BATCH, lambda part: self._file.write(partial(relaying.requeue, ids=part, actor=actor))
        )
        self._file.hint((OUTBOX,))
        return answers

    async def drop(self, ids: Sequence[str], *, actor: str, reason: str) -> list[bool]:
        reason = storable(reason)
        answers = await in_parts(
            ids,
            BATCH,
            lambda part: self._file.write(partial(relaying.drop, ids=part, actor=actor, reason=reason)),
        )
        self._file.hint((OUTBOX,))
        return answers

    async def lag(self) -> OutboxLag:
        return await self._file.read(lag)

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, keep=keep, limit=limit), repeatable=True)
