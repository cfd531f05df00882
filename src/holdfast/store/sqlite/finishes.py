"""Write how a claimed job ended, or put it back. Every write names row, id and token, and losing is ordinary."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.kernel.outcomes import Cancel, Dead, Done, Outcome, Retry, Snooze, Unknown
from holdfast.store.doubts import ENDED, refusal, unsure
from holdfast.store.once import Pair, pair_of
from holdfast.store.records import ERRORS_KEPT, AttemptError, Claim, Finish
from holdfast.store.sqlite.connection import Db, numbers
from holdfast.store.sqlite.doubts import IS_SURE, leave_to_person, open_effects, reason_with_doubts
from holdfast.store.sqlite.moves import Freed, let_go, pass_on
from holdfast.store.states import Held, State
from holdfast.store.story import Entry, tell, told_of

# Those that are still held, all at once; their number is the answer. The id is asked for too: the first row and token of
# another file are the same as here.
_SUCCEED = f"""
    INSERT INTO holdfast_over (seq, state, token, attempt, worker, started_at, finished_at, result)
    SELECT r.seq, 'succeeded', r.token, r.attempt, r.worker, r.started_at, ?2, g.value ->> 3
    FROM json_each(?1) AS g CROSS JOIN holdfast_running AS r ON r.seq = g.value ->> 0 AND r.token = g.value ->> 1
    CROSS JOIN holdfast_job AS j ON j.seq = r.seq AND j.id = g.value ->> 2 WHERE {IS_SURE}
    RETURNING seq, token"""
_HELD = """
    SELECT r.stop FROM holdfast_running AS r CROSS JOIN holdfast_job AS j USING (seq)
    WHERE r.seq = ? AND r.token = ? AND j.id = ?"""
_STOP = "DELETE FROM holdfast_running WHERE seq IN (SELECT value FROM json_each(?))"


def finish(db: Db, finishes: Sequence[Finish], *, beside: bool = False) -> list[bool]:
    """`beside`: with rows of the caller, which must not commit with another end than that."""
    if beside:
        _refuse_doubts(db, finishes)
    first: dict[Pair, Finish] = {}  # of two outcomes for one claim, the first counts
    for item in finishes:
        first.setdefault(pair_of(item.claim), item)
    done = [item for item in first.values() if isinstance(item.outcome, Done)]
    succeeded = _succeed(db, done) if done else set[Pair]()
    accepted = [
        first.pop(pair_of(item.claim), None) is item and _accept(db, item, succeeded) for item in finishes
    ]
    _pass_on(db, [item.claim for item, ok in zip(finishes, accepted, strict=True) if ok])
    return accepted


def _accept(db: Db, item: Finish, succeeded: set[Pair]) -> bool:
    if isinstance(item.outcome, Done):
        return pair_of(item.claim) in succeeded or _leave_in_doubt(db, item.claim)
    return _end(db, item.claim, item.outcome)


def _succeed(db: Db, done: Sequence[Finish]) -> set[Pair]:
    batch = [(item.claim.row, item.claim.token, item.claim.job_id, item.outcome.result) for item in done]  # type: ignore[union-attr]
    rows = set(db.rows(_SUCCEED, msgspec.json.encode(batch).decode(), db.now))
    if rows:
        db.run(_STOP, numbers(seq for seq, _ in rows))
    claims = [item.claim for item in done if (item.claim.row, item.claim.token) in rows]
    if len(claims) != len(
        rows
    ):  # a claim of another file is among them, with the row and token of one of ours
        claims = [claim for claim in claims if _is_of_its_row(db, claim)]
    for claim in claims:
        if claim.keyed or claim.unique is not None:
            let_go(db, claim.row)
    return {pair_of(claim) for claim in claims}


def _leave_in_doubt(db: Db, claim: Claim) -> bool:
    """One that did not succeed: its claim is lost, or an effect of it is open. Then it may not be over."""
    if not _is_held(db, claim) or not (effects := leave_to_person(db, claim.row)):
        return False
    return park(db, claim, State.UNKNOWN, unsure(ENDED, effects))


def _refuse_doubts(db: Db, finishes: Sequence[Finish]) -> None:
    for item in finishes:
        ends = isinstance(item.outcome, Done | Dead) and _is_held(db, item.claim)
        if ends and (effects := open_effects(db, item.claim.row)):
            raise refusal(item.claim.job_id, effects)


def _is_held(db: Db, claim: Claim) -> bool:
    return db.row(_HELD, claim.row, claim.token, claim.job_id) is not None


def _is_of_its_row(db: Db, claim: Claim) -> bool:
    return bool(db.value("SELECT id FROM holdfast_job WHERE seq = ?", claim.row) == claim.job_id)


def _end(db: Db, claim: Claim, outcome: Outcome) -> bool:
    match outcome:
        case Cancel(reason=reason):
            return cancel(db, claim, reason)
        case Dead(error=error):
            return die(db, claim, error) is not None
        case Unknown(reason=reason, look=look):
            return park(db, claim, State.UNKNOWN, reason, look=look)
        case Snooze() as snooze:
            return _put_off(db, claim, snooze)
        case Retry(after=after, error=error):
            return put_back(db, claim, "failed", after=after, error=error)
        case Done():
            raise AssertionError("successes are written together")


def _put_off(db: Db, claim: Claim, snooze: Snooze) -> bool:
    told, words = told_of(snooze)
    if snooze.guard is not None:
        done = put_back(db, claim, told, uncharge=1, reason=Held.GUARD, gate=snooze.guard, words=words)
    else:
        done = put_back(db, claim, told, after=snooze.after, uncharge=1, lock=snooze.lock, words=words)
    if done and snooze.counted:
        db.run("UPDATE holdfast_job SET put_offs = put_offs + 1 WHERE seq = ?", claim.row)
    return done


def cancel(db: Db, claim: Claim, reason: str, *, error: str | None = None, was: int | None = None) -> bool:
    sql = """INSERT INTO holdfast_over (seq, state, token, attempt, worker, started_at, finished_at, reason)
        SELECT seq, 'cancelled', token, attempt, worker, started_at, ?, ? FROM holdfast_running
        WHERE seq = ? AND token = ?"""
    if not _is_held(db, claim):
        return False
    reason = reason_with_doubts(db, claim.row, reason)
    _keep(db, claim, Entry(outcome="cancelled", words=reason), error=error, was=was)
    db.run(sql, db.now, reason, claim.row, claim.token)
    db.run("DELETE FROM holdfast_running WHERE seq = ?", claim.row)
    let_go(db, claim.row)
    return True


def die(db: Db, claim: Claim, why: str, *, was: int | None = None) -> State | None:
    """Dead; unknown, if nobody knows of an effect of it whether it was done. None: the claim was lost.

    `was`: the token of its dead worker.
    """
    if not _is_held(db, claim):
        return None
    effects = leave_to_person(db, claim.row)
    state = State.UNKNOWN if effects else State.DEAD
    park(db, claim, state, unsure(why, effects) if effects else why, was=was)
    return state


def park(
    db: Db, claim: Claim, state: State, reason: str, *, was: int | None = None, look: float | None = None
) -> bool:
    """Dead lets go of all it holds; unknown keeps its turn and its unique key, because it may not be over."""
    sql = """INSERT INTO holdfast_parked (seq, state, token, attempt, worker, started_at, reason, look_at)
        SELECT seq, ?, token, attempt, worker, started_at, ?, ? FROM holdfast_running WHERE seq = ? AND token = ?"""
    look_at = None if look is None else db.now + look
    if not _is_of_its_row(db, claim) or not db.run(sql, state, reason, look_at, claim.row, claim.token):
        return False
    _keep(db, claim, Entry(outcome=state), error=reason, was=was)
    db.run("DELETE FROM holdfast_running WHERE seq = ?", claim.row)
    if state == State.DEAD:
        let_go(db, claim.row)
    else:
        _give_back_slot(db, claim)
    return True


_BACK = """
    INSERT INTO holdfast_queued (seq, rank, priority, queue, held, attempt, suspect, token, run_at, expires_at,
        bounded_task, ordering_key, concurrency_key, tenant, gate, waits_for, reason)
    SELECT r.seq, coalesce(?, r.rank), j.priority, j.queue, ?, r.attempt - ?, j.interruptions > 0, r.token, ?,
        j.expires_at, iif(j.bounded, j.task, NULL), j.ordering_key, j.concurrency_key, j.tenant, coalesce(?, j.guard), ?, ?
    FROM holdfast_running AS r JOIN holdfast_job AS j USING (seq) WHERE r.seq = ? AND r.token = ?"""


def put_back(
    db: Db,
    claim: Claim,
    told: str | None,
    *,
    after: float = 0.0,
    uncharge: int = 0,
    error: str | None = None,
    reason: Held | None = None,
    keep_rank: bool = False,
    lock: str | None = None,
    gate: str | None = None,
    words: str | None = None,
    was: int | None = None,
) -> bool:
    """From running to queued. One that was asked to stop is cancelled instead. `told`: how its story calls that, if it does."""
    row = db.row(_HELD, claim.row, claim.token, claim.job_id)
    if row is None:
        return False
    if row[0] is not None:
        return cancel(db, claim, row[0], error=error, was=was)
    held = reason or _held(claim, after)
    key = gate or lock or (claim.guard if held is Held.GUARD else None)
    until = db.now + after if after > 0 else None
    if told is not None:
        entry = Entry(outcome=told, words=words, held=held, key=key, until=until)
        _keep(db, claim, entry, error=error, was=was)
    rank = None if held is not None or keep_rank else db.draw("rank")
    db.run(_BACK, rank, held, uncharge, db.now + after, gate, lock, words, claim.row, claim.token)
    db.run("DELETE FROM holdfast_running WHERE seq = ?", claim.row)
    _give_back_slot(db, claim)
    return True


def _held(claim: Claim, after: float) -> Held | None:
    if after > 0:
        return Held.TIME
    return Held.ARRIVED if claim.concurrency is not None or claim.tenant is not None else None


def _give_back_slot(db: Db, claim: Claim) -> None:
    if claim.concurrency is not None:
        db.run("DELETE FROM holdfast_slot WHERE key = ? AND seq = ?", claim.concurrency, claim.row)


def _keep(db: Db, claim: Claim, entry: Entry, *, error: str | None, was: int | None) -> None:
    """With the job, while its claim is still there: what went wrong, and how this claim ended."""
    row = db.row(_KEPT, claim.row)
    assert row is not None
    errors, story, worker, began = row
    entry = msgspec.structs.replace(
        entry, ended_at=db.now, attempt=claim.attempt, token=was or claim.token,
        fence=None if was is None else claim.token, worker=worker, began_at=began,
    )  # fmt: skip
    if error is not None:
        errors = _with_error(errors, AttemptError(claim.attempt, db.now, error))
    db.run(
        "UPDATE holdfast_job SET errors = ?, story = ? WHERE seq = ?", errors, tell(story, entry), claim.row
    )


_KEPT = """
    SELECT j.errors, j.story, r.worker, r.started_at FROM holdfast_job AS j CROSS JOIN holdfast_running AS r USING (seq)
    WHERE j.seq = ?"""


def _with_error(kept: str | None, error: AttemptError) -> str:
    errors = [] if kept is None else msgspec.json.decode(kept, type=list[AttemptError])
    return msgspec.json.encode([*errors, error][-ERRORS_KEPT:]).decode()


def release(db: Db, claims: Sequence[Claim]) -> list[bool]:
    released = [put_back(db, claim, "released", uncharge=1, keep_rank=True) for claim in claims]
    _pass_on(db, [claim for claim, ok in zip(claims, released, strict=True) if ok])
    return released


def hold(db: Db, claims: Sequence[Claim], reason: Held) -> list[bool]:
    held = [put_back(db, claim, "held", uncharge=1, reason=reason) for claim in claims]
    _pass_on(db, [claim for claim, ok in zip(claims, held, strict=True) if ok])
    return held


def _pass_on(db: Db, gone: Sequence[Claim]) -> None:
    if freed := [Freed(claim.ordered, claim.concurrency) for claim in gone if claim.keyed]:
        pass_on(db, freed)


def settle(db: Db, job_id: str, token: int) -> bool:
    sql = """SELECT EXISTS (SELECT 1 FROM holdfast_over WHERE seq = j.seq AND token = ?2)
        OR EXISTS (SELECT 1 FROM holdfast_parked WHERE seq = j.seq AND token = ?2)
        OR EXISTS (SELECT 1 FROM holdfast_queued WHERE seq = j.seq AND token = ?2)
        FROM holdfast_job AS j WHERE j.id = ?1"""
    return bool(db.value(sql, job_id, token))
