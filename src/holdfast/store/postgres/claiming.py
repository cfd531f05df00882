"""The statements that claim ready jobs and hold on to them, as procedures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.store.postgres import finishes as f
from holdfast.store.postgres.low_water import LowWater, Marks, from_the_top
from holdfast.store.postgres.rows import CLAIM, SOON, held_by, same_id, to_claims
from holdfast.store.records import Claim, Finish, Renewal
from holdfast.store.statements import Procedure, Statement

# $1 queues, $2 how many of each, $3 lease, $4 worker, $5 and $6 where to begin. All in one statement, and so in one
# round trip:
# - `picked` is materialised, so that it runs once and takes no more than its limits;
# - `ctid` finds the rows again without an index; one that moved meanwhile is not taken, and stays ready;
# - the token must be larger than the row's last: a slow claim must not fence with an older token than a fast one;
# - `filled` lets a tenant's next jobs become ready in place of those that were taken.
_FENCE = "fence AS MATERIALIZED (SELECT nextval('holdfast.token') AS token, holdfast.now() AS now)"
_WANTED = """
wanted AS MATERIALIZED (
    SELECT w.* FROM unnest($1::text[], $2::int[], $5::smallint[], $6::bigint[]) AS w(queue, number, priority, low)
    WHERE NOT EXISTS (SELECT FROM holdfast.queue q WHERE q.name = w.queue))"""
_FIT = """j.state = 'queued' AND j.held IS NULL
            AND (j.expires_at IS NULL OR j.expires_at > (SELECT now FROM fence))
            AND (j.token IS NULL OR j.token < (SELECT token FROM fence))
            AND CASE WHEN j.tenant IS NULL THEN true ELSE NOT EXISTS (
                SELECT FROM holdfast.tenant t WHERE t.key = j.tenant AND t.resumed_at IS NULL) END"""


def _ready(begin: str) -> str:
    return f"""
picked AS MATERIALIZED (
    SELECT p.ctid FROM wanted w CROSS JOIN LATERAL (
        SELECT j.ctid FROM holdfast.job j WHERE j.queue = w.queue AND NOT j.suspect AND {begin} AND {_FIT}
        ORDER BY j.priority DESC, j.rank LIMIT w.number FOR UPDATE SKIP LOCKED) p)"""


# From the top, or one priority from its mark on: what lies before it are mostly rows that are dead and cannot be cleaned
# away (see low_water).
_BEGIN = {False: "true", True: "j.priority = w.priority AND j.rank >= w.low"}
_SUSPECT = f"""
picked AS MATERIALIZED (
    SELECT j.ctid FROM holdfast.job j WHERE j.queue IN (SELECT queue FROM wanted) AND j.suspect AND {_FIT}
    ORDER BY j.rank LIMIT 1 FOR UPDATE SKIP LOCKED)"""


def _taken(alone: str) -> str:
    return f"""
taken AS (
    UPDATE holdfast.job j SET state = 'running', token = (SELECT token FROM fence),
        lease_until = (SELECT now FROM fence) + make_interval(secs => $3::float8), worker = $4::text,
        alone = {alone}, attempt = j.attempt + 1, started_at = (SELECT now FROM fence)
    WHERE j.ctid = ANY(ARRAY(SELECT ctid FROM picked))
    RETURNING {CLAIM}, j.priority, j.rank)"""


_FILLED = f"""
next AS MATERIALIZED (
    SELECT h.id, nextval('holdfast.rank') AS rank FROM (
        SELECT t.queue, t.tenant, count(*) AS number FROM taken t WHERE t.tenant IS NOT NULL GROUP BY 1, 2) t
    JOIN wanted w ON w.queue = t.queue
    CROSS JOIN LATERAL (
        SELECT count(*) AS number FROM holdfast.job r WHERE r.queue = t.queue AND r.tenant = t.tenant
            AND r.tenant IS NOT NULL AND r.state = 'queued' AND r.held IS NULL) ready
    CROSS JOIN LATERAL (
        SELECT h.id FROM holdfast.job h WHERE h.queue = t.queue AND h.tenant = t.tenant AND h.held = 'tenant'
        ORDER BY h.priority DESC, h.rank LIMIT greatest(w.number - ready.number + t.number, 0)
        FOR UPDATE SKIP LOCKED) h),
filled AS (UPDATE holdfast.job j SET held = NULL, rank = next.rank FROM next WHERE {same_id("next")})"""
# Beside id and token: what a finish that was not written has instead of a claim's columns, but for the last.
_NO_CLAIM = ", ".join(["NULL"] * 18)


def _parts(marked: bool) -> str:
    return f"{_FENCE}, {_WANTED}, {_ready(_BEGIN[marked])}, {_taken('false')}, {_FILLED}"


_CLAIM = {marked: f"WITH {_parts(marked)} SELECT * FROM taken" for marked in (False, True)}
_CLAIM_SUSPECT = f"WITH {_FENCE}, {_WANTED}, {_SUSPECT}, {_taken('true')}, {_FILLED} SELECT * FROM taken"
_FINISH_AND_CLAIM = {
    marked: f"""
WITH {f.done(7, 8, 9, only=SOON)}, {_parts(marked)}
SELECT * FROM taken UNION ALL SELECT id::text, token, {_NO_CLAIM}, {f.IS_HELD}, NULL, NULL, NULL, NULL, NULL FROM lost"""
    for marked in (False, True)
}


def claim(
    wants: Mapping[str, int], *, lease: float, worker: str, water: LowWater, top: bool = False
) -> Procedure[list[Claim]]:
    marks = from_the_top(wants) if top else water.marks(wants)
    rows = yield Statement(_CLAIM[marks.used], _wanted(marks, lease, worker))
    water.learn(rows, marks)
    return to_claims(rows, wants)


def claim_suspect(queues: Sequence[str], *, lease: float, worker: str) -> Procedure[Claim | None]:
    wants = dict.fromkeys(queues, 1)
    rows = yield Statement(_CLAIM_SUSPECT, _wanted(from_the_top(wants), lease, worker))
    found = to_claims(rows, wants)
    return found[0] if found else None


def finish_and_claim(
    finishes: Sequence[Finish], wants: Mapping[str, int], *, lease: float, worker: str, water: LowWater
) -> Procedure[tuple[Sequence[bool | None], list[Claim]]]:
    """Plain jobs that are done cost one statement in all; anything else takes several."""
    if not f.is_plain(finishes):
        told = yield from f.end_free([f.ending(item) for item in finishes])
        accepted = [each if isinstance(each, bool) else None for each in told]
        if not any(wants.values()):
            return accepted, []
        return accepted, (yield from claim(wants, lease=lease, worker=worker, water=water))
    marks = water.marks(wants)
    params = (*_wanted(marks, lease, worker), *f.done_params(finishes))
    rows = yield Statement(_FINISH_AND_CLAIM[marks.used], params)
    lost = {(row[0], row[1]): row[20] for row in rows if row[2] is None}
    taken = [row for row in rows if row[2] is not None] if lost else rows
    water.learn(taken, marks)
    return f.plain_answers(finishes, lost), to_claims(taken, wants)


def _wanted(marks: Marks, lease: float, worker: str) -> tuple[object, ...]:
    return marks.queues, marks.numbers, float(lease), worker, marks.priorities, marks.lows


def renew(claims: Sequence[Claim], *, lease: float) -> Procedure[list[Renewal]]:
    ordered = sorted(claims, key=lambda claim: claim.job_id)
    ids, tokens = [claim.job_id for claim in ordered], [claim.token for claim in ordered]
    rows = yield Statement(_RENEW, (ids, tokens, float(lease)))
    return [Renewal(*row) for row in rows]


# A row that someone else has locked is not waited for: its holder may be finishing it in a long transaction of its own,
# and the other leases must not end meanwhile. It is still held, and keeps the lease it has.
_IN_TIME = f"{held_by('c')} AND CASE WHEN j.lease_until > holdfast.now() THEN true END"
_RENEW = f"""
WITH given AS MATERIALIZED (
    SELECT j.id FROM unnest($1::uuid[], $2::bigint[]) AS c(id, token), holdfast.job j
    WHERE {_IN_TIME}),
free AS MATERIALIZED (
    SELECT j.id FROM unnest($1::uuid[], $2::bigint[]) AS c(id, token), holdfast.job j
    WHERE {_IN_TIME} FOR UPDATE OF j SKIP LOCKED),
renewed AS (
    UPDATE holdfast.job j SET lease_until = holdfast.now() + make_interval(secs => $3::float8)
    WHERE j.id = ANY(ARRAY(SELECT id FROM free))
    RETURNING j.id, j.token, j.lease_until, j.reason)
SELECT id::text, token, date_part('epoch', lease_until), reason FROM renewed
UNION ALL
SELECT j.id::text, j.token, date_part('epoch', j.lease_until), j.reason FROM holdfast.job j
WHERE j.id = ANY(ARRAY(SELECT id FROM given EXCEPT SELECT id FROM free))"""


def held(worker: str) -> Procedure[list[Claim]]:
    rows = yield Statement(_HELD_BY, (worker,))
    return [Claim(*row) for row in rows]


_HELD_BY = f"SELECT {CLAIM} FROM holdfast.job j WHERE j.state = 'running' AND j.worker = $1 ORDER BY j.id"


def report(claim: Claim, *, progress: float | None, note: str | None) -> Procedure[bool]:
    return bool((yield Statement(_REPORT, (claim.job_id, claim.token, progress, note))))


# Not waited for either: whoever has the row's lock is finishing the job, and then nobody asks how far it is.
_HELD = "j.id = $1::uuid AND CASE WHEN j.lease_until IS NOT NULL THEN j.token = $2::bigint END"
_REPORT = f"""
WITH held AS MATERIALIZED (SELECT j.id FROM holdfast.job j WHERE {_HELD}),
free AS MATERIALIZED (SELECT j.id FROM holdfast.job j WHERE {_HELD} FOR UPDATE SKIP LOCKED),
told AS (
    UPDATE holdfast.job j SET progress = coalesce($3::float8, j.progress), note = coalesce($4::text, j.note)
    WHERE j.id = ANY(ARRAY(SELECT id FROM free)))
SELECT 1 FROM held"""
