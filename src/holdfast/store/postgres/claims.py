"""Claim ready jobs and hold on to them; what becomes of them is in finishes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.names import check_name
from holdfast.kernel.outcomes import Retry, Snooze
from holdfast.kernel.telemetry import note
from holdfast.store.batching import Batcher
from holdfast.store.checks import (
    all_held,
    check_claims,
    check_finishes,
    check_id,
    check_lease,
    check_limit,
    check_queues,
    check_wants,
)
from holdfast.store.postgres import finishes as f
from holdfast.store.postgres.connection import BEGIN, IMPATIENT, in_parts, still_unknown
from holdfast.store.postgres.failures import Blocked
from holdfast.store.postgres.promotion import CHUNK
from holdfast.store.postgres.rows import CLAIM, held_by, same_id, to_claims
from holdfast.store.postgres.subject import Home, Subject
from holdfast.store.records import Claim, Finish, Renewal, Rescue
from holdfast.store.statements import Procedure, Statement

_MANY = 1_000  # jobs without keys in one transaction

# $1 queues, $2 how many of each, $3 lease, $4 worker. All in one statement, and so in one round trip:
# - `picked` is materialised, so that it runs once and takes no more than its limits;
# - `ctid` finds the rows again without an index; one that moved meanwhile is not taken, and stays ready;
# - the token must be larger than the row's last: a slow claim must not fence with an older token than a fast one;
# - `filled` lets a tenant's next jobs become ready in place of those that were taken.
_FENCE = "fence AS MATERIALIZED (SELECT nextval('holdfast.token') AS token, holdfast.now() AS now)"
_WANTED = """
wanted AS MATERIALIZED (
    SELECT w.queue, w.number FROM unnest($1::text[], $2::int[]) AS w(queue, number)
    WHERE NOT EXISTS (SELECT FROM holdfast.queue q WHERE q.name = w.queue))"""
_FIT = """j.state = 'queued' AND j.held IS NULL
            AND (j.expires_at IS NULL OR j.expires_at > (SELECT now FROM fence))
            AND (j.token IS NULL OR j.token < (SELECT token FROM fence))"""
_READY = f"""
picked AS MATERIALIZED (
    SELECT p.ctid FROM wanted w CROSS JOIN LATERAL (
        SELECT j.ctid FROM holdfast.job j WHERE j.queue = w.queue AND NOT j.suspect AND {_FIT}
        ORDER BY j.priority DESC, j.rank LIMIT w.number FOR UPDATE SKIP LOCKED) p)"""
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
_PARTS = f"{_FENCE}, {_WANTED}, {_READY}, {_taken('false')}, {_FILLED}"
_CLAIM = f"WITH {_PARTS} SELECT * FROM taken"
_CLAIM_SUSPECT = f"WITH {_FENCE}, {_WANTED}, {_SUSPECT}, {_taken('true')}, {_FILLED} SELECT * FROM taken"
_NO_CLAIM = ", ".join(["NULL"] * 21)  # beside the id: what a lost finish has instead of a claim's columns
_FINISH_AND_CLAIM = f"""
WITH {f.done(5, 6, 7)}, {_PARTS}
SELECT * FROM taken UNION ALL SELECT id::text, {_NO_CLAIM} FROM lost"""


def claim(wants: Mapping[str, int], *, lease: float, worker: str) -> Procedure[list[Claim]]:
    return to_claims((yield Statement(_CLAIM, _wanted(wants, lease, worker))), wants)


def claim_suspect(queues: Sequence[str], *, lease: float, worker: str) -> Procedure[Claim | None]:
    wants = dict.fromkeys(queues, 1)
    found = to_claims((yield Statement(_CLAIM_SUSPECT, _wanted(wants, lease, worker))), wants)
    return found[0] if found else None


def finish_and_claim(
    finishes: Sequence[Finish], wants: Mapping[str, int], *, lease: float, worker: str
) -> Procedure[tuple[list[bool], list[Claim]]]:
    """Plain jobs that are done cost one statement in all; anything else takes several."""
    if not f.is_plain(finishes):
        accepted = yield from f.finish(finishes)
        return accepted, (yield from claim(wants, lease=lease, worker=worker))
    params = (*_wanted(wants, lease, worker), *f.done_params(finishes))
    rows = yield Statement(_FINISH_AND_CLAIM, params)
    lost = {row[0] for row in rows if row[1] is None}
    claims = to_claims([row for row in rows if row[1] is not None] if lost else rows, wants)
    return [item.claim.job_id not in lost for item in finishes], claims


def _wanted(wants: Mapping[str, int], lease: float, worker: str) -> tuple[list[str], list[int], float, str]:
    wanted = {queue: number for queue, number in wants.items() if number > 0}
    return list(wanted), list(wanted.values()), float(lease), worker


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


class Claims(Subject):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        # A batch is one transaction. Keyed finishes stand apart, so that plain ones never wait for a key; and one
        # that must wait for a key leaves its batch, so that the others do not wait with it.
        self._plain: Batcher[Sequence[Finish], list[bool]] = Batcher(
            self._finish_groups, size=len, limit=500, name="finish"
        )
        self._others: Batcher[Sequence[Finish], list[bool] | Exception] = Batcher(
            self._finish_keyed_groups, size=len, limit=CHUNK, name="finish-keyed"
        )
        self._patient = asyncio.Semaphore(max(1, self._database.target.pool_size // 4))

    async def claim(self, wants: Mapping[str, int], *, lease: float, worker: str) -> list[Claim]:
        wants = check_wants(wants)
        check_lease("lease", lease)
        check_name("worker", worker)
        if not any(number > 0 for number in wants.values()):
            return []
        return await self._database.write(partial(claim, wants, lease=lease, worker=worker))

    async def claim_suspect(self, queues: Sequence[str], *, lease: float, worker: str) -> Claim | None:
        queues = check_queues(queues)
        check_lease("lease", lease)
        check_name("worker", worker)
        return await self._database.write(partial(claim_suspect, queues, lease=lease, worker=worker))

    async def renew(self, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
        claims = check_claims(claims)
        check_lease("lease", lease)
        if not claims:
            return []
        return await self._database.write(partial(renew, claims, lease=lease), urgent=True, repeatable=True)

    async def finish(self, finishes: Sequence[Finish], *, tx: object | None = None) -> list[bool]:
        finishes = check_finishes(finishes)
        if not finishes:
            return []
        if tx is None:
            self._database.pool.check()
            if f.is_plain(finishes):
                return await self._plain.add(finishes)
            once = _first_of_each(finishes)
            accepted = await in_parts(once, part_size(item.claim for item in once), self._finish_keyed)
            return _spread(finishes, once, accepted)
        executor = await self._home.adopt(tx)
        once = _first_of_each(finishes)
        return all_held(finishes, _spread(finishes, once, await executor.run(f.finish(once))))

    async def finish_and_claim(
        self, finishes: Sequence[Finish], wants: Mapping[str, int], *, lease: float, worker: str
    ) -> tuple[list[bool], list[Claim]]:
        finishes = check_finishes(finishes)
        wants = check_wants(wants)
        check_lease("lease", lease)
        check_name("worker", worker)
        if not finishes:
            return [], await self.claim(wants, lease=lease, worker=worker)
        once = _first_of_each(finishes)
        make = partial(finish_and_claim, once, wants, lease=lease, worker=worker)
        run = self._database.write if f.is_plain(once) else self._database.atomic
        try:
            accepted, claims = await run(make, urgent=True)
        except CommitUnknown as error:
            # What was claimed, if anything, is rescued when its lease ends: nobody knows the token.
            note("claim.answer_lost", worker=worker, error=repr(error))
            accepted, claims = await still_unknown(error, self._finish_again(once, error)), []
        return _spread(finishes, once, accepted), claims

    async def release(self, claims: Sequence[Claim]) -> list[bool]:
        claims = check_claims(claims)
        return await in_parts(
            claims,
            part_size(claims),
            lambda part: self._database.atomic(partial(f.put_back, part), urgent=True),
        )

    async def settle(self, job_id: str, token: int) -> bool:
        check_id(job_id)
        [accepted] = await self._database.read(partial(f.settle, [job_id], [token]))
        return accepted

    async def rescue(self, *, limit: int = 100) -> list[Rescue]:
        check_limit(limit)
        return await self._interrupt(await self._database.read(partial(f.find_ended, limit)), None)

    async def rescue_worker(self, worker: str) -> list[Rescue]:
        check_name("worker", worker)
        return await self._interrupt(await self._database.read(partial(f.find_of_worker, worker)), worker)

    async def _interrupt(self, found: Sequence[f.Interrupted], worker: str | None) -> list[Rescue]:
        rescued: list[Rescue] = []
        for start in range(0, len(found), CHUNK):
            part = found[start : start + CHUNK]
            rescued += await self._database.atomic(partial(f.interrupt, part, worker=worker))
        return rescued

    async def _finish_keyed(self, finishes: Sequence[Finish]) -> list[bool]:
        answer = await self._others.add(finishes)
        if isinstance(answer, Blocked):
            async with self._patient:
                return await self._finish_settled(finishes, begin=BEGIN)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _finish_keyed_groups(
        self, groups: Sequence[Sequence[Finish]]
    ) -> Sequence[list[bool] | Exception]:
        """All together; when one is blocked, each by itself, and who is blocked is told so."""
        try:
            return await self._finish_groups(groups)
        except Blocked as error:
            if len(groups) == 1:
                return [error]
        return [await self._finish_group(group) for group in groups]

    async def _finish_group(self, group: Sequence[Finish]) -> list[bool] | Exception:
        try:
            [answer] = await self._finish_groups([group])
        except Exception as error:  # noqa: BLE001  what one fails with is not the others' failure
            return error
        return answer

    async def _finish_groups(self, groups: Sequence[Sequence[Finish]]) -> list[list[bool]]:
        """The finishes of many callers as one, and each caller's answers."""
        together = [item for group in groups for item in group]
        once = _first_of_each(together)
        answers = iter(_spread(together, once, await self._finish_settled(once, begin=IMPATIENT)))
        return [[next(answers) for _ in group] for group in groups]

    async def _finish_settled(self, finishes: Sequence[Finish], *, begin: str) -> list[bool]:
        make = partial(f.finish, finishes)
        try:
            if f.is_plain(finishes):
                return await self._database.write(make, urgent=True)
            return await self._database.atomic(make, urgent=True, begin=begin)
        except CommitUnknown as unknown:
            return await still_unknown(unknown, self._finish_again(finishes, unknown))

    async def _finish_again(self, finishes: Sequence[Finish], unknown: CommitUnknown) -> list[bool]:
        """After a lost answer: try again, which waits for a first try that is still under way, then look."""
        run = self._database.write if f.is_plain(finishes) else self._database.atomic
        accepted = await run(partial(f.finish, finishes), urgent=True)
        lost = [item.claim for item, ok in zip(finishes, accepted, strict=True) if not ok]
        if not lost:
            return accepted
        look = partial(f.settle, [claim.job_id for claim in lost], [claim.token for claim in lost])
        found = iter(await self._database.read(look))
        answers = [ok or next(found) for ok in accepted]
        for item, ok in zip(finishes, answers, strict=True):
            # Put back by the first try and claimed by another since, or lost before it: nobody can tell.
            if not ok and isinstance(item.outcome, Retry | Snooze):
                raise unknown
        return answers


def part_size(claims: Iterable[Claim]) -> int:
    """How many of these fit into one transaction."""
    return CHUNK if any(claim.keyed for claim in claims) else _MANY


def _first_of_each(finishes: Sequence[Finish]) -> Sequence[Finish]:
    """A claim is finished once: of two outcomes for it, the first counts."""
    first = {item.claim.job_id: item for item in reversed(finishes)}
    return (
        finishes
        if len(first) == len(finishes)
        else [item for item in finishes if first[item.claim.job_id] is item]
    )


def _spread(finishes: Sequence[Finish], once: Sequence[Finish], accepted: list[bool]) -> list[bool]:
    if once is finishes:
        return accepted
    answers = {id(item): ok for item, ok in zip(once, accepted, strict=True)}
    return [answers.pop(id(item), False) for item in finishes]
