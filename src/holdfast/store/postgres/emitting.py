"""Store new events: in one statement, which also draws their versions. Ids are minted by the caller, so repeating is safe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.store.event_records import Emitted, NewEvent
from holdfast.store.postgres.rows import SOON
from holdfast.store.statements import Procedure, Statement


def emit(
    events: Sequence[NewEvent], *, again: bool = False, impatient: bool = False
) -> Procedure[list[Emitted]]:
    """Store all of them. An id that is stored answers with its version.

    `impatient`: who would wait for another's lock is blocked instead, after a moment.
    """
    once = list({event.id: event for event in reversed(events)}.values())[::-1]
    versions: dict[str, int | None] = {}
    if once and not again:
        versions = yield from _store(once, impatient=impatient)
    if once and not versions:
        versions = yield from _repeat(once)
    return [Emitted(event.id, versions.get(event.id)) for event in events]


def _store(events: Sequence[NewEvent], *, impatient: bool) -> Procedure[dict[str, int | None]]:
    """Their versions by id; nothing, when one of the ids is stored already."""
    if len(events) > 1:
        statement = Statement(_EMIT[impatient], _columns(events))
    elif events[0].key is not None:
        statement = Statement(_ONE[impatient], (*_row(events[0]), events[0].key))
    else:
        statement = Statement(_ONE_WITHOUT_KEY[impatient], _row(events[0]))
    return {row[0]: row[1] for row in (yield statement)}


def _repeat(events: Sequence[NewEvent]) -> Procedure[dict[str, int | None]]:
    """A first try that nobody knows the end of had the rows of its keys: who has them now sees what became of it."""
    keys = sorted({event.key for event in events if event.key is not None})
    if keys:
        yield Statement(_LOCK, (keys,))
    rows = yield Statement(_KNOWN, ([event.id for event in events],))
    versions: dict[str, int | None] = {row[0]: row[1] for row in rows}
    if new := [event for event in events if event.id not in versions]:
        versions |= {row[0]: row[1] for row in (yield Statement(_EMIT_AGAIN, _columns(new)))}
    return versions


_LOCK = """
INSERT INTO holdfast.event_key AS k (key, version)
SELECT u.key, 0 FROM unnest($1::text[]) WITH ORDINALITY AS u(key, place) ORDER BY u.place
ON CONFLICT (key) DO UPDATE SET version = k.version"""
_KNOWN = "SELECT id::text, version FROM holdfast.outbox WHERE id = ANY($1::uuid[])"


# The rows of keys are locked in the order of the keys, so that two callers wait for each other in one order; only then
# are numbers drawn, so that within a key they are in the order of the versions. `last` has the new versions in the same
# order as the keys were given, which is that of their bytes.
def _emit_sql(*, test: str, conflict: str) -> str:
    return f"""
WITH known AS MATERIALIZED (SELECT FROM holdfast.outbox o WHERE o.id = ANY($1::uuid[]) LIMIT 1),
newer AS (
    INSERT INTO holdfast.event_key AS k (key, version)
    SELECT u.key, u.number FROM unnest($10::text[], $11::bigint[]) WITH ORDINALITY AS u(key, number, place)
    WHERE {test} AND NOT EXISTS (SELECT FROM known) ORDER BY u.place
    ON CONFLICT (key) DO UPDATE SET version = k.version + excluded.version RETURNING k.key, k.version)
INSERT INTO holdfast.outbox (id, type, data, key, correlation_id, causation_id, trace, version)
SELECT g.id, g.type, g.data, g.key, g.correlation_id, g.causation_id, g.trace, n.last[g.which] - g.behind
FROM (SELECT array_agg(version ORDER BY key COLLATE "C") AS last FROM newer) n,
    unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::bigint[])
    WITH ORDINALITY AS g(id, type, data, key, correlation_id, causation_id, trace, which, behind, place)
WHERE {test} AND NOT EXISTS (SELECT FROM known) ORDER BY g.place
{conflict} RETURNING id::text, version"""


_PATIENCE = {False: "true", True: SOON}
_EMIT = {impatient: _emit_sql(test=test, conflict="") for impatient, test in _PATIENCE.items()}
# One without a key may be stored by its first try at this very moment.
_EMIT_AGAIN = _emit_sql(test="true", conflict="ON CONFLICT (id) DO NOTHING")
# A single one is most of what callers ask for, and is planned and run in half the time.
_ONE = {
    impatient: f"""
WITH newer AS (
    INSERT INTO holdfast.event_key AS k (key, version)
    SELECT $7::text, 1 WHERE {test} AND NOT EXISTS (SELECT FROM holdfast.outbox o WHERE o.id = $1::uuid)
    ON CONFLICT (key) DO UPDATE SET version = k.version + 1 RETURNING k.version)
INSERT INTO holdfast.outbox (id, type, data, correlation_id, causation_id, trace, key, version)
SELECT $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, n.version FROM newer n
RETURNING id::text, version"""
    for impatient, test in _PATIENCE.items()
}
_ONE_WITHOUT_KEY = {
    impatient: f"""
INSERT INTO holdfast.outbox (id, type, data, correlation_id, causation_id, trace)
SELECT $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text WHERE {test}
ON CONFLICT (id) DO NOTHING RETURNING id::text, version"""
    for impatient, test in _PATIENCE.items()
}


def _row(event: NewEvent) -> tuple[Any, ...]:
    return (
        event.id, event.type, event.data, event.correlation_id, event.causation_id, event.trace,
    )  # fmt: skip


def _columns(events: Sequence[NewEvent]) -> tuple[list[Any], ...]:
    numbers: dict[str, int] = {}
    for event in events:
        if event.key is not None:
            numbers[event.key] = numbers.get(event.key, 0) + 1
    keys = sorted(numbers)
    places, left = {key: place for place, key in enumerate(keys, 1)}, dict(numbers)
    which, behind = list[int | None](), list[int | None]()
    for event in events:
        which.append(None if event.key is None else places[event.key])
        if event.key is not None:
            left[event.key] -= 1
        behind.append(None if event.key is None else left[event.key])
    return (
        [event.id for event in events],
        [event.type for event in events],
        [event.data for event in events],
        [event.key for event in events],
        [event.correlation_id for event in events],
        [event.causation_id for event in events],
        [event.trace for event in events],
        which,
        behind,
        keys,
        [numbers[key] for key in keys],
    )
