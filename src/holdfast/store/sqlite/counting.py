"""How many jobs there are of each kind: a bounded look along the index of each, and the tally of what is too much for that."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.store.counting import CROWD, Kind, Tally, counted, crowds, is_old
from holdfast.store.records import Count
from holdfast.store.sqlite.connection import Db

_QUEUED = "SELECT queue FROM holdfast_queued INDEXED BY holdfast_queued_{index} WHERE {which} LIMIT ?1"
_HELD = {
    "arrived": "arrived",
    "ordering": "behind",
    "time": "due",
    "concurrency": "for_slot",
    "paused": "paused",
    "tenant": "for_window",
    "guard": "gated",
    "waiting": "waiting",
}
# SQLite takes the index of two reasons only for a question of both.
_STRANGE = "held IN ('guard', 'unknown_task') AND held = 'unknown_task'"
_PARKED = """SELECT j.queue FROM holdfast_parked AS p INDEXED BY holdfast_parked_by_state
    CROSS JOIN holdfast_job AS j ON j.seq = p.seq WHERE p.state = '{state}' LIMIT ?1"""
_RUNNING = (
    """SELECT j.queue FROM holdfast_running AS r CROSS JOIN holdfast_job AS j ON j.seq = r.seq LIMIT ?1"""
)
_KINDS: list[tuple[Kind, str]] = [
    (("queued", None), _QUEUED.format(index="for_claim", which="held IS NULL AND NOT suspect")),
    (("queued", None), _QUEUED.format(index="for_suspect", which="held IS NULL AND suspect")),
    *(
        (("queued", held), _QUEUED.format(index=index, which=f"held = '{held}'"))
        for held, index in _HELD.items()
    ),
    (("queued", "unknown_task"), _QUEUED.format(index="by_hand", which=_STRANGE)),
    (("running", None), _RUNNING),
    *(((state, None), _PARKED.format(state=state)) for state in ("dead", "unknown")),
]
_ALL = -1  # no limit


def look(db: Db, kinds: Collection[Kind] | None = None, limit: int = CROWD) -> list[Tally]:
    found: dict[tuple[Kind, str], int] = {}
    for kind, sql in _KINDS:
        if kinds is None or kind in kinds:
            for queue, number in db.rows(f"SELECT queue, count(*) FROM ({sql}) GROUP BY queue", limit):
                found[kind, queue] = found.get((kind, queue), 0) + number
    return [Tally(*kind, queue, number) for (kind, queue), number in found.items()]


def _told(db: Db) -> list[Tally]:
    return [Tally(*row) for row in db.rows("SELECT state, held, queue, number, at, took FROM holdfast_tally")]


def count(db: Db) -> list[Count]:
    seen = look(db)
    if not (wanted := crowds(seen)):
        return counted(seen, [])
    told = [each for each in _told(db) if each.kind in wanted]
    if missing := wanted - {each.kind for each in told}:
        told += look(db, missing, _ALL)
    return counted(seen, told)


def due(db: Db) -> tuple[set[Kind], bool]:
    """The crowds, when it is time to count them; and whether what was told of others is to be forgotten."""
    wanted, told = crowds(look(db)), _told(db)
    if not wanted:
        return set(), bool(told)
    return (wanted if is_old(told, wanted, db.now) else set()), False


def count_all(db: Db, kinds: Collection[Kind]) -> tuple[float, list[Tally]]:
    """And when it was."""
    return db.now, look(db, kinds, _ALL)


def keep(db: Db, numbers: Collection[Tally], at: float, took: float) -> None:
    db.run("DELETE FROM holdfast_tally")
    rows = [(each.state, each.held, each.queue, each.number, at, took) for each in numbers]
    db.run_many(
        "INSERT INTO holdfast_tally (state, held, queue, number, at, took) VALUES (?, ?, ?, ?, ?, ?)", rows
    )
