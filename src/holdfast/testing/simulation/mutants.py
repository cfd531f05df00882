"""Bugs planted on purpose, one at a time: a simulation that does not find them proves nothing about the store."""
# ruff: noqa: ARG001, ARG005  a planted function takes what the true one takes

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any, TypeVar
from unittest.mock import patch

import msgspec

from holdfast.kernel.errors import CommitUnknown, StoreUnavailable
from holdfast.kernel.ids import new_id
from holdfast.kernel.world import current
from holdfast.store import ladder
from holdfast.store.records import Claim, Enqueued, NewJob, Renewal
from holdfast.store.sqlite import claims, finishes, holds, jobs, moves, rescues, schedules
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.transaction import SqliteTx
from holdfast.testing.simulation import worker

T = TypeVar("T")


@dataclass(frozen=True)
class Mutant:
    breaks: str
    plant: Callable[[ExitStack], None]
    schema: str = ""  # run on the template


MUTANTS: dict[str, Mutant] = {}


def _mutant(
    name: str, schema: str = ""
) -> Callable[[Callable[[ExitStack], None]], Callable[[ExitStack], None]]:
    def register(plant: Callable[[ExitStack], None]) -> Callable[[ExitStack], None]:
        assert plant.__doc__ is not None
        MUTANTS[name] = Mutant(plant.__doc__, plant, schema)
        return plant

    return register


@contextmanager
def planted(name: str | None) -> Generator[None, None, None]:
    with ExitStack() as stack:
        if name is not None:
            MUTANTS[name].plant(stack)
        yield


def schema_of(name: str | None) -> str:
    return "" if name is None else MUTANTS[name].schema


# --- how ---


def _replace(stack: ExitStack, place: object, name: str, substitute: object) -> None:
    assert hasattr(place, name), f"{place} has no {name} any more: the mutant must be written anew"
    stack.enter_context(patch.object(place, name, substitute))


def _rewrite(stack: ExitStack, *changes: tuple[str, str], only: str = "") -> None:
    """Change the text of SQL statements on their way to SQLite; of those that contain `only`."""
    for old, _ in changes:
        assert any(old in text for text in _sources()), (
            f"no statement says {old!r} any more: write the mutant anew"
        )
    for method in ("run", "row", "rows", "value"):
        stack.enter_context(patch.object(Db, method, _rewriting(getattr(Db, method), changes, only)))


@cache
def _sources() -> list[str]:
    files = resources.files("holdfast.store.sqlite").iterdir()
    return [file.read_text("utf-8") for file in files if file.name.endswith(".py")]


def _rewriting(original: Any, changes: Sequence[tuple[str, str]], only: str) -> Any:
    def call(db: Db, sql: str, *params: Any) -> Any:
        if only in sql:
            for old, new in changes:
                sql = sql.replace(old, new)
        return original(db, sql, *params)

    return call


def _unkeyed(table: str, columns: str) -> str:
    """A table of what is held, without the primary key that is the promise."""
    return f"DROP TABLE {table}; CREATE TABLE {table} ({columns});"


# --- which ---


@_mutant("no fence")
def _no_fence(stack: ExitStack) -> None:
    """finish does not look at the token"""
    _rewrite(
        stack,
        (" AND r.token = g.value ->> 1", ""),
        (" AND r.token = ?", " AND ? IS NOT NULL"),
        ("WHERE seq = ? AND token = ?", "WHERE seq = ? AND ? IS NOT NULL"),
        only="holdfast_running",
    )


@_mutant("no unique key", _unkeyed("holdfast_unique", "key TEXT, seq INTEGER"))
def _no_unique_key(stack: ExitStack) -> None:
    """neither the index nor enqueue looks for another job with the unique key"""
    _replace(stack, jobs, "_twins", lambda *_: {})


@_mutant("no turn", _unkeyed("holdfast_turn", "key TEXT, seq INTEGER"))
def _no_turn(stack: ExitStack) -> None:
    """neither the index nor promotion looks whether another job has the turn"""
    _replace(stack, ladder, "_take_turn", lambda job, facts: job.ordered is not None)


@_mutant("no slot", _unkeyed("holdfast_slot", "key TEXT, slot INTEGER, seq INTEGER"))
def _no_slot(stack: ExitStack) -> None:
    """neither the index nor promotion looks whether a slot is taken"""
    _replace(stack, ladder, "_take_slot", lambda job, facts: None if job.concurrency is None else 1)


@_mutant("no turn check")
def _no_turn_check(stack: ExitStack) -> None:
    """promotion gives out turns that are taken; the index is still there"""
    _replace(stack, ladder, "_take_turn", lambda job, facts: job.ordered is not None)


@_mutant("no slot check")
def _no_slot_check(stack: ExitStack) -> None:
    """promotion gives out slots that are taken; the index is still there"""
    _replace(stack, ladder, "_take_slot", lambda job, facts: None if job.concurrency is None else 1)


@_mutant("turn out of order")
def _turn_out_of_order(stack: ExitStack) -> None:
    """a newcomer takes a free turn before those that wait for it"""
    _replace(stack, moves, "_turn_taken", _turn_taken_only)
    _replace(stack, moves, "_next_in_order", lambda *_: {})


def _turn_taken_only(db: Db, key: str, *, behind: bool) -> bool:
    return bool(db.value("SELECT 1 FROM holdfast_turn WHERE key = ?", key))


@_mutant("workers do not renew")
def _workers_do_not_renew(stack: ExitStack) -> None:
    """a worker trusts its first lease for ever"""

    async def nothing(self: worker.Worker, holdings: list[worker.Holding]) -> None:
        for holding in holdings:
            holding.until += 1000

    _replace(stack, worker.Worker, "_renew", nothing)


@_mutant("renew does nothing")
def _renew_does_nothing(stack: ExitStack) -> None:
    """renew answers yes and writes nothing"""

    def renew(db: Db, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
        return [Renewal(claim.job_id, claim.token, db.now + lease, None) for claim in claims]

    _replace(stack, claims, "renew", renew)


@_mutant("renew after the end")
def _renew_after_the_end(stack: ExitStack) -> None:
    """renew brings back a lease that has ended"""
    _rewrite(stack, ("AND token = ? AND lease_until > ?", "AND token = ? AND ? IS NOT NULL"))


@_mutant("early steal")
def _early_steal(stack: ExitStack) -> None:
    """rescue does not wait for the lease's end"""
    _rewrite(stack, ("r.lease_until <= ?", "r.lease_until - 3 <= ?"))


@_mutant("no rescue")
def _no_rescue(stack: ExitStack) -> None:
    """rescue finds nothing"""
    _rewrite(stack, ("r.lease_until <= ?", "r.lease_until <= ? - 100000"))


@_mutant("enqueue ignores tx")
def _enqueue_ignores_tx(stack: ExitStack) -> None:
    """a job is stored beside its caller's transaction, not in it"""
    original = jobs.Jobs.enqueue

    async def enqueue(
        self: jobs.Jobs, new: Sequence[NewJob], *, tx: object = None, again: bool = False
    ) -> list[Enqueued]:
        if isinstance(tx, SqliteTx):
            return await tx.run(_beside(partial(jobs.enqueue, jobs=tuple(new))))
        return await original(self, new, again=again)

    _replace(stack, jobs.Jobs, "enqueue", enqueue)


def _beside(call: Callable[[Db], T]) -> Callable[[Db], T]:
    """Do it in a transaction of its own, in the middle of the caller's."""

    def beside(db: Db) -> T:
        db.commit()
        db.begin("IMMEDIATE")
        answer = call(db)
        db.commit()
        db.begin("IMMEDIATE")
        return answer

    return beside


@_mutant("an expired job keeps its keys")
def _expired_keeps_its_keys(stack: ExitStack) -> None:
    """a job that is over still holds its unique key and its slot"""
    original = moves.end_queued

    def end_queued(db: Db, seq: int, reason: str) -> moves.Freed:
        with patch.object(moves, "let_go", lambda db, seq: moves.Freed(None, None)):
            return original(db, seq, reason)

    _replace(stack, holds, "end_queued", end_queued)


@_mutant("finish ignores tx")
def _finish_ignores_tx(stack: ExitStack) -> None:
    """a job succeeds before the rows of its transaction commit"""
    original = claims.Claims.finish

    async def finish(self: claims.Claims, ends: Any, *, tx: Any = None) -> list[bool]:
        if isinstance(tx, SqliteTx):
            return await tx.run(_beside(partial(finishes.finish, finishes=tuple(ends))))
        return await original(self, ends)

    _replace(stack, claims.Claims, "finish", finish)


@_mutant("a retry mints a new id")
def _retry_mints_a_new_id(stack: ExitStack) -> None:
    """an enqueue of unknown outcome is repeated as another job"""
    original = jobs.Jobs.enqueue

    async def enqueue(
        self: jobs.Jobs, new: Sequence[NewJob], *, tx: object = None, again: bool = False
    ) -> list[Enqueued]:
        if tx is not None:
            return await original(self, new, tx=tx)
        while True:
            try:
                return await self._file.write(partial(jobs.enqueue, jobs=new))
            except CommitUnknown:
                new = [msgspec.structs.replace(job, id=new_id()) for job in new]

    _replace(stack, jobs.Jobs, "enqueue", enqueue)


@_mutant("unknown is taken for refused")
def _unknown_is_taken_for_refused(stack: ExitStack) -> None:
    """a finish whose commit did not happen is answered as a lost claim"""

    async def settle_only(self: claims.Claims, ends: Any, lost: CommitUnknown) -> list[bool]:
        return [await self.settle(item.claim.job_id, item.claim.token) for item in ends]

    _replace(stack, claims.Claims, "_finish_again", settle_only)


@_mutant("refused after unknown")
def _refused_after_unknown(stack: ExitStack) -> None:
    """an enqueue that may have committed is answered as refused, because its repetition was"""
    original = jobs.Jobs.enqueue

    async def enqueue(self: jobs.Jobs, new: Any, *, tx: Any = None, again: bool = False) -> list[Enqueued]:
        try:
            return await original(self, new, tx=tx, again=again)
        except CommitUnknown as unknown:
            raise (
                unknown.__cause__ if isinstance(unknown.__cause__, StoreUnavailable) else unknown
            ) from None

    _replace(stack, jobs.Jobs, "enqueue", enqueue)


@_mutant("nothing is passed on")
def _nothing_is_passed_on(stack: ExitStack) -> None:
    """whoever frees a turn or a slot promotes nobody, and repair does not either"""
    for place in (moves, finishes, rescues, jobs, holds):
        _replace(stack, place, "pass_on", lambda *_, **__: 0)


@_mutant("snooze is charged")
def _snooze_is_charged(stack: ExitStack) -> None:
    """a deferral costs an attempt"""
    original = finishes.put_back

    def put_back(db: Db, claim: Claim, **options: Any) -> bool:
        return original(db, claim, **(options | {"uncharge": 0}))

    _replace(stack, finishes, "put_back", put_back)


@_mutant("strikes are not counted")
def _strikes_are_not_counted(stack: ExitStack) -> None:
    """a job that kills its worker runs for ever"""
    _rewrite(stack, ("strikes = ?", "strikes = 0 * ?"))
    _replace(stack, rescues, "STRIKES_LIMIT", 1000)


@_mutant("a tick without its row")
def _tick_without_its_row(stack: ExitStack) -> None:
    """two schedulers each enqueue the job of a nominal time"""

    def tick(db: Db, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
        [enqueued] = jobs.enqueue(db, [job])
        sql = "INSERT INTO holdfast_tick (schedule, nominal, job_id, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        db.run(sql, schedule, nominal, enqueued.id, db.now)
        return enqueued

    _replace(stack, schedules, "tick", tick)


@_mutant("the client's clock")
def _the_clients_clock(stack: ExitStack) -> None:
    """times are read from the wall clock of whoever asks"""
    original = Db.begin

    def begin(db: Db, mode: str) -> None:
        original(db, mode)
        db.now = current().now()

    _replace(stack, Db, "begin", begin)


@_mutant("a lease for everyone")
def _a_lease_for_everyone(stack: ExitStack) -> None:
    """a lease by name is given before another's has ended"""
    _rewrite(
        stack, ("SELECT owner, until FROM holdfast_lease", "SELECT owner, until - 100000 FROM holdfast_lease")
    )


@_mutant("a key for everyone")
def _a_key_for_everyone(stack: ExitStack) -> None:
    """an idempotency key is given while another holds it, and finished with any token"""
    _rewrite(
        stack,
        (
            "SELECT fingerprint, until, response FROM holdfast_key",
            "SELECT fingerprint, 0, response FROM holdfast_key",
        ),
        ("AND token = ? AND response IS NULL", "AND ? IS NOT NULL"),
    )
