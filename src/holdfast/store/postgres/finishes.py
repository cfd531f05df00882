"""Write how claimed jobs ended, or put them back. Every write names id and token, and losing is ordinary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from holdfast.kernel.outcomes import Cancel, Dead, Done, Retry, Snooze, Unknown
from holdfast.store.doubts import ENDED, noted, refusal, unsure
from holdfast.store.once import Pair, answers, pair_of
from holdfast.store.postgres.doubts import HAS_STEPS, leave_to_person
from holdfast.store.postgres.in_order import finish_in_order, is_in_order
from holdfast.store.postgres.locks import Keys, Lock, lock_chain, take_chain, wait_for
from holdfast.store.postgres.promotion import pass_on
from holdfast.store.postgres.rows import MOVED, MOVED_J, SOON, held_by, same_id
from holdfast.store.records import ERRORS_KEPT, STRIKES_LIMIT, Claim, Finish, Rescue
from holdfast.store.statements import Procedure, Statement
from holdfast.store.states import Held, State
from holdfast.store.story import told_of


class Ending(msgspec.Struct, frozen=True):
    """What becomes of one claimed job."""

    job_id: str
    token: int
    keys: Keys
    state: State
    after: float = 0.0  # queued: seconds until it may run again
    uncharge: int = 0  # queued: attempts given back
    keep_rank: bool = False  # queued: at its old place
    held: Held | None = None  # queued: for this reason, whatever its keys say
    reason: str | None = None
    error: str | None = None
    result: str | None = None
    looked: bool = False  # at its effects: nothing of them is in its way
    waits_for: str | None = None  # queued: the lock, or the key of a step's guard
    counted: bool = False  # queued: one of the times that it may be put off for its guard
    told: str | None = None  # how its story calls that; None: as its state
    words: str | None = None  # why it was put off
    was: int | None = None  # the token of its dead worker
    look: float | None = None  # unknown: seconds until it is looked up again

    @property
    def pair(self) -> Pair:
        return self.job_id, self.token

    @property
    def is_keyed(self) -> bool:
        """Whether another job may be waiting for this one to end."""
        return self.keys.ordered is not None or self.keys.concurrency is not None


def is_plain(finishes: Sequence[Finish]) -> bool:
    """Whether all of them simply end, and nobody waits for one of them."""
    return all(
        type(item.outcome) is Done and not item.claim.keyed and not item.claim.has_steps for item in finishes
    )


def done(ids: int, tokens: int, results: int, *, only: str = "true") -> str:
    """The fast way for plain jobs, as parts of a WITH; the numbers are those of its parameters.

    One that has steps is not ended so: its effects must be looked at first (see `_end`).
    """
    return f"""
gone AS (
    DELETE FROM holdfast.job j
    USING unnest(${ids}::uuid[], ${tokens}::bigint[], ${results}::text[]) AS g(id, token, result)
    WHERE {held_by("g")} AND NOT {HAS_STEPS} AND {only}
    RETURNING {MOVED_J}, g.result),
kept AS (
    INSERT INTO holdfast.history ({MOVED}, state, finished_at, result)
    SELECT {MOVED}, 'succeeded', (SELECT holdfast.now()), result FROM gone),
lost AS (
    SELECT * FROM unnest(${ids}::uuid[], ${tokens}::bigint[]) AS g(id, token) EXCEPT SELECT id, token FROM gone)"""


# Of a finish that was not written: it was not lost, but has steps. The row may have changed since; whoever looks again
# is told the truth.
IS_HELD = f"EXISTS (SELECT FROM holdfast.job j WHERE {held_by('lost')})"
_DONE = {
    impatient: f"WITH {done(1, 2, 3, only=SOON if impatient else 'true')} SELECT id::text, token, {IS_HELD} FROM lost"
    for impatient in (False, True)
}


def done_params(finishes: Sequence[Finish]) -> tuple[list[str], list[int], list[str | None]]:
    """Each claim once, its first outcome; sorted by id, as everyone does who locks several rows."""
    first = {pair_of(item.claim): item for item in reversed(finishes)}
    ordered = sorted(first.values(), key=_by_id)
    return (
        [item.claim.job_id for item in ordered],
        [item.claim.token for item in ordered],
        [item.outcome.result if isinstance(item.outcome, Done) else None for item in ordered],
    )


def _by_id(item: Finish) -> str:
    return item.claim.job_id


def finish_plain(finishes: Sequence[Finish]) -> Procedure[list[bool | None]]:
    """One statement. None: it is not plain after all, because it has steps.

    Who would wait for another's lock is blocked instead, after a moment.
    """
    return plain_answers(finishes, (yield from _done(finishes, impatient=True)))


def plain_answers(finishes: Sequence[Finish], lost: Mapping[Pair, bool]) -> list[bool | None]:
    pairs = [pair_of(item.claim) for item in finishes]
    accepted = answers(pairs, set(pairs) - lost.keys())
    return [None if lost.get(pair) else ok for pair, ok in zip(pairs, accepted, strict=True)]


def finish(finishes: Sequence[Finish], *, beside: bool = False, plans: bool = False) -> Procedure[list[bool]]:
    """`beside`: with rows of the caller, which must not commit with another end than that.

    `plans`: in a transaction of our own, whose statements are planned our way from the first of these on; for one in order.
    """
    if is_one_in_order(finishes) and (yield from finish_in_order(finishes[0], plans=plans)):
        return [True]
    if not is_plain(finishes):
        return (yield from end([ending(item) for item in finishes], beside=beside))
    accepted = plain_answers(finishes, (yield from _done(finishes, impatient=False)))
    with_steps = [ending(item) for item, ok in zip(finishes, accepted, strict=True) if ok is None]
    told = iter((yield from end(with_steps, beside=beside)) if with_steps else ())
    return [next(told) if ok is None else ok for ok in accepted]


def is_one_in_order(finishes: Sequence[Finish]) -> bool:
    return len(finishes) == 1 and is_in_order(finishes[0])


def _done(finishes: Sequence[Finish], *, impatient: bool) -> Procedure[dict[Pair, bool]]:
    """Those that were not written, and whether they are held."""
    rows = yield Statement(_DONE[impatient], done_params(finishes))
    return {(row[0], row[1]): row[2] for row in rows}


def ending(item: Finish) -> Ending:
    claim, keys = item.claim, Keys(item.claim.ordered, item.claim.concurrency)
    match item.outcome:
        case Done(result=result):
            return Ending(claim.job_id, claim.token, keys, State.SUCCEEDED, result=result)
        case Cancel(reason=reason):
            return Ending(claim.job_id, claim.token, keys, State.CANCELLED, reason=reason)
        case Retry(after=after, error=error):
            return Ending(
                claim.job_id, claim.token, keys, State.QUEUED, after=after, error=error, told="failed"
            )
        case Snooze() as snooze:
            return _put_off(claim, keys, snooze)
        case Dead(error=error):
            return Ending(claim.job_id, claim.token, keys, State.DEAD, reason=error, error=error)
        case Unknown(reason=reason, look=look):
            return Ending(
                claim.job_id, claim.token, keys, State.UNKNOWN, reason=reason, error=reason, look=look
            )


def _put_off(claim: Claim, keys: Keys, snooze: Snooze) -> Ending:
    by_guard = snooze.guard is not None
    return Ending(
        claim.job_id,
        claim.token,
        keys,
        State.QUEUED,
        after=0.0 if by_guard else snooze.after,
        uncharge=1,
        held=Held.GUARD if by_guard else None,
        waits_for=snooze.guard or snooze.lock,
        counted=snooze.counted,
        told=told_of(snooze)[0],
        words=snooze.reason,
    )


def putting_back(claims: Sequence[Claim], *, held: Held | None = None) -> list[Ending]:
    """Uncharged, because they were not run: at their old place, or held for a reason that only `unhold` ends."""
    return [
        Ending(
            claim.job_id,
            claim.token,
            Keys(claim.ordered, claim.concurrency),
            State.QUEUED,
            uncharge=1,
            keep_rank=held is None,
            held=held,
            told="released" if held is None else "held",
        )
        for claim in claims
    ]


def end(endings: Sequence[Ending], *, beside: bool = False) -> Procedure[list[bool]]:
    """Any outcomes, with or without keys; what was held is passed on in the same transaction."""
    ended = yield from ended_as(endings, beside=beside)
    return answers([item.pair for item in endings], set(ended))


def ended_as(endings: Sequence[Ending], *, beside: bool = False) -> Procedure[dict[Pair, State]]:
    """The same. What became of those that were accepted."""
    yield from lock_chain([item.keys for item in endings])
    return (yield from _end(endings, beside=beside))


def end_free(endings: Sequence[Ending], *, first: Lock | None = None) -> Procedure[list[bool | Lock]]:
    """The same without waiting for keys, but for the `first`: who lacks a lock is told which, and is left alone.

    It waits before it holds anything, so it is never in anyone's way meanwhile.
    """
    if first is not None:
        yield from wait_for(first)
    lacking = yield from take_chain([item.keys for item in endings])
    free = [item for item in endings if item.keys not in lacking]
    ended = yield from _end(free)
    told = iter(answers([item.pair for item in free], set(ended)))
    return [lacking[item.keys] if item.keys in lacking else next(told) for item in endings]


def _end(endings: Sequence[Ending], *, beside: bool = False) -> Procedure[dict[Pair, State]]:
    if not endings:
        return {}
    first = {item.pair: item for item in reversed(endings)}
    once = [item for item in endings if first[item.pair] is item]
    rows = yield Statement(_END, _columns(once))
    if asked := {(row[0], row[1]): row[3] for row in rows if row[2] is None}:
        doubtful = [item for item in once if item.pair in asked]
        sure = yield from _look_at_effects(doubtful, asked, beside=beside)
        rows = [row for row in rows if row[2] is not None]
        rows += yield Statement(_END, _columns(sure))
    ended = {(row[0], row[1]): State(row[2]) for row in rows}
    yield from pass_on([item.keys for item in once if item.pair in ended])
    return ended


def _look_at_effects(
    doubtful: Sequence[Ending], asked: Mapping[Pair, str | None], *, beside: bool
) -> Procedure[list[Ending]]:
    """Jobs with steps, their rows locked: how they end when it is known which of their effects are open."""
    found = yield from leave_to_person([item.job_id for item in doubtful])
    sure = []
    for item in doubtful:
        effects = found.get(item.job_id, [])
        if effects and beside and item.state in (State.SUCCEEDED, State.DEAD):
            raise refusal(item.job_id, effects)
        sure.append(_with_doubts(item, effects, asked[item.pair]))
    return sure


def _with_doubts(item: Ending, effects: Sequence[str], asked: str | None) -> Ending:
    if not effects:
        return replace(item, looked=True)
    if item.state in (State.SUCCEEDED, State.DEAD):
        why = unsure(item.reason or ENDED, effects)
        return replace(item, state=State.UNKNOWN, reason=why, error=why, looked=True, told=None, result=None)
    return replace(item, reason=noted(item.reason or asked or "", effects), looked=True)


def _columns(endings: Sequence[Ending]) -> tuple[list[object], ...]:
    return (
        [item.job_id for item in endings],
        [item.token for item in endings],
        [item.state.value for item in endings],
        [item.after for item in endings],
        [item.uncharge for item in endings],
        [item.keep_rank for item in endings],
        [None if item.held is None else item.held.value for item in endings],
        [item.reason for item in endings],
        [item.error for item in endings],
        [item.result for item in endings],
        [item.looked for item in endings],
        [item.waits_for for item in endings],
        [item.told or item.state.value for item in endings],
        [item.words for item in endings],
        [item.was for item in endings],
        [item.counted for item in endings],
        [item.look for item in endings],
    )


# The errors kept so far with this one, the newest only.
_ERRORS = f"""CASE WHEN l.error IS NULL THEN l.errors ELSE (
            SELECT jsonb_agg(kept.entry ORDER BY kept.place) FROM (
                SELECT entry, place FROM jsonb_array_elements(coalesce(l.errors, '[]') || jsonb_build_object(
                    'attempt', l.attempt, 'at', date_part('epoch', l.now), 'error', l.error))
                    WITH ORDINALITY AS e(entry, place) ORDER BY place DESC LIMIT {ERRORS_KEPT}) kept) END"""
# How this claim ended, unless it has succeeded: what is to be said of that stands in its row.
_STORY = """CASE WHEN l.state = 'succeeded' THEN l.story ELSE holdfast.tell(l.story, jsonb_strip_nulls(jsonb_build_object(
            'o', CASE WHEN l.state = 'queued' AND l.asked IS NOT NULL THEN 'cancelled' ELSE l.told END,
            'e', date_part('epoch', l.now), 'a', l.attempt, 't', coalesce(l.was, l.token),
            'f', CASE WHEN l.was IS NOT NULL THEN l.token END, 'w', l.worker, 'b', date_part('epoch', l.started_at),
            'r', CASE WHEN l.state = 'cancelled' OR l.state = 'queued' AND l.asked IS NOT NULL
                THEN coalesce(l.reason, l.asked) ELSE l.words END)
            || CASE WHEN l.state = 'queued' AND l.asked IS NULL THEN jsonb_strip_nulls(jsonb_build_object(
                'h', coalesce(l.held, CASE WHEN l.after > 0 THEN 'time' END),
                'k', coalesce(l.waits_for, CASE l.held WHEN 'guard' THEN l.guard END),
                'u', CASE WHEN l.after > 0 THEN date_part('epoch', l.now) + l.after END)) ELSE '{}' END)) END"""
# A job that was asked to stop is not put back: it is cancelled. Ranks are drawn in the order of the call,
# rows are locked in the order of their ids. A job with steps that would be over or dead is only locked, and has no state in
# the answer: a later statement sees what was written of its effects until then, and this one might not.
_END = f"""
WITH given AS MATERIALIZED (
    SELECT g.*, CASE WHEN g.state = 'queued' AND NOT g.keep_rank THEN nextval('holdfast.rank') END AS rank
    FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::float8[], $5::int[], $6::bool[], $7::text[],
        $8::text[], $9::text[], $10::text[], $11::bool[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::bool[], $17::float8[])
    AS g(id, token, state, after, uncharge, keep_rank, held, reason, error, result, looked, waits_for, told, words, was,
        counted, look)),
locked AS MATERIALIZED (
    SELECT g.*, j.reason AS asked, j.errors, j.story, j.attempt, j.worker, j.started_at, j.guard, holdfast.now() AS now,
        {HAS_STEPS} AND NOT g.looked AND CASE g.state WHEN 'unknown' THEN false WHEN 'queued' THEN j.reason IS NOT NULL
            ELSE true END AS doubtful
    FROM holdfast.job j, given g
    WHERE {held_by("g")} ORDER BY g.id FOR UPDATE OF j),
settled AS MATERIALIZED (
    SELECT l.id, l.token, l.rank, l.after, l.uncharge, l.held, l.result, l.waits_for, l.words, l.counted, l.look, l.now, {_ERRORS} AS errors,
        {_STORY} AS story,
        CASE WHEN l.state = 'queued' AND l.asked IS NOT NULL THEN 'cancelled' ELSE l.state END AS state,
        CASE WHEN l.state = 'queued' THEN coalesce(l.reason, l.asked) ELSE l.reason END AS reason
    FROM locked l WHERE NOT l.doubtful),
gone AS (
    DELETE FROM holdfast.job j USING settled s WHERE {same_id("s")} AND s.state IN ('succeeded', 'cancelled')
    RETURNING {MOVED_J.replace("j.errors", "s.errors").replace("j.story", "s.story")}, s.state, s.now, s.reason, s.result),
kept AS (
    INSERT INTO holdfast.history ({MOVED}, state, finished_at, reason, result)
    SELECT {MOVED}, state, now, reason, result FROM gone),
parked AS (
    UPDATE holdfast.job j SET state = s.state, lease_until = NULL, slot = NULL,
        reason = s.reason,
        errors = s.errors,
        story = s.story,
        progress = NULL, note = NULL, waits_for = s.waits_for, words = s.words,
        look_at = CASE WHEN s.state = 'unknown' THEN s.now + make_interval(secs => s.look) END,
        has_turn = j.has_turn AND s.state <> 'dead',
        attempt = j.attempt - s.uncharge,
        put_offs = j.put_offs + s.counted::int,
        worker = CASE WHEN s.state <> 'queued' THEN j.worker END,
        started_at = CASE WHEN s.state <> 'queued' THEN j.started_at END,
        alone = j.alone AND s.state <> 'queued',
        held = CASE WHEN s.state <> 'queued' THEN NULL WHEN s.held IS NOT NULL THEN s.held
            WHEN s.after > 0 THEN 'time'
            WHEN j.concurrency_key IS NOT NULL OR j.tenant IS NOT NULL THEN 'arrived' END,
        run_at = CASE WHEN s.state = 'queued' THEN s.now + make_interval(secs => s.after) ELSE j.run_at END,
        rank = CASE WHEN s.held IS NULL AND s.after <= 0 AND j.concurrency_key IS NULL AND j.tenant IS NULL
            THEN coalesce(s.rank, j.rank) ELSE j.rank END
    FROM settled s WHERE {same_id("s")} AND s.state NOT IN ('succeeded', 'cancelled'))
SELECT id::text, token, state, NULL FROM settled
UNION ALL SELECT id::text, token, NULL, asked FROM locked WHERE doubtful"""


def settle(job_ids: Sequence[str], tokens: Sequence[int]) -> Procedure[list[bool]]:
    """Which of these finishes were accepted: the question after a lost answer."""
    rows = yield Statement(_SETTLE, (list(job_ids), list(tokens)))
    return [row[0] for row in rows]


_SETTLE = """
SELECT EXISTS (SELECT FROM holdfast.history h WHERE h.id = g.id AND h.token = g.token)
    OR EXISTS (SELECT FROM holdfast.job j WHERE j.id = g.id AND j.token = g.token AND j.state <> 'running')
FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS g(id, token, place) ORDER BY g.place"""


class Interrupted(msgspec.Struct, frozen=True):
    """A running job whose worker seems lost."""

    job_id: str
    keys: Keys


def find_ended(limit: int, skip: int = 0) -> Procedure[list[Interrupted]]:
    sql = """SELECT id::text, ordering_key, concurrency_key FROM holdfast.job
        WHERE state = 'running' AND lease_until <= (SELECT holdfast.now()) ORDER BY lease_until, id
        LIMIT $1 OFFSET $2"""
    return [Interrupted(row[0], Keys(row[1], row[2])) for row in (yield Statement(sql, (limit, skip)))]


def find_of_worker(worker: str) -> Procedure[list[Interrupted]]:
    sql = """SELECT id::text, ordering_key, concurrency_key FROM holdfast.job
        WHERE state = 'running' AND worker = $1 ORDER BY id"""
    return [Interrupted(row[0], Keys(row[1], row[2])) for row in (yield Statement(sql, (worker,)))]


def by_keys(found: Sequence[Interrupted]) -> list[list[Interrupted]]:
    groups: dict[Keys, list[Interrupted]] = {}
    for item in found:
        groups.setdefault(item.keys, []).append(item)
    return list(groups.values())


def interrupt(
    found: Sequence[Interrupted], *, worker: str | None = None, waits: bool = False
) -> Procedure[list[Rescue]]:
    """A new token first, so that the old holder's never matches again; then as if that one put the job back.

    Not `waits`: who lacks a key that another has, or is locked, is passed over.
    """
    free = found
    if waits:
        yield from lock_chain([item.keys for item in found])
    else:
        lacking = yield from take_chain([item.keys for item in found])
        free = [item for item in found if item.keys not in lacking]
    sql = _fence_off(of_worker=worker is not None, waits=waits)
    ids = [item.job_id for item in free]
    rows = yield Statement(sql, (ids,) if worker is None else (ids, worker))
    lost = {row[0]: row for row in rows}
    taken = [(item, lost[item.job_id]) for item in free if item.job_id in lost]
    endings = [_interrupted(row, item.keys) for item, row in taken]
    ended = yield from ended_as(endings)
    return [
        Rescue(ending.job_id, row[2], ended[ending.pair], row[4], row[5])
        for ending, (_, row) in zip(endings, taken, strict=True)
    ]


def interrupt_ended(limit: int) -> Procedure[list[Rescue]]:
    """In one transaction, past those that are passed over."""
    rescued, passed_over = list[Rescue](), 0
    while len(rescued) < limit:
        found = yield from find_ended(limit - len(rescued), passed_over)
        if not found:
            break
        part = yield from interrupt(found)
        rescued += part
        passed_over += len(found) - len(part)
    return rescued


def interrupt_all_of(worker: str) -> Procedure[list[Rescue]]:
    found = yield from find_of_worker(worker)
    return (yield from interrupt(found, worker=worker)) if found else []


def _fence_off(*, of_worker: bool, waits: bool) -> str:
    """Whoever has the row's lock is finishing or renewing the job right now: it is not lost, or not yet."""
    who = "j.worker = $2" if of_worker else "j.lease_until <= holdfast.now()"
    return _FENCE_OFF.format(who=who, skip="" if waits else "SKIP LOCKED", same_id=same_id("lost"))


_FENCE_OFF = """
WITH lost AS MATERIALIZED (
    SELECT j.id, j.token FROM holdfast.job j WHERE j.id = ANY($1::uuid[]) AND j.state = 'running' AND {who}
    ORDER BY j.id FOR UPDATE {skip})
UPDATE holdfast.job j SET token = (SELECT nextval('holdfast.token')), interruptions = j.interruptions + 1,
    strikes = j.strikes + j.alone::int, suspect = true
FROM lost WHERE {same_id}
RETURNING j.id::text, j.token, j.worker, j.strikes, j.interruptions, j.task, lost.token"""


def _interrupted(row: Sequence[object], keys: Keys) -> Ending:
    job_id, token, strikes, was = str(row[0]), int(str(row[1])), int(str(row[3])), int(str(row[6]))
    if strikes >= STRIKES_LIMIT:
        why = f"its worker died under it {strikes} times while it ran alone"
        return Ending(job_id, token, keys, State.DEAD, reason=why, error=why, was=was)
    return Ending(job_id, token, keys, State.QUEUED, told="interrupted", was=was)
