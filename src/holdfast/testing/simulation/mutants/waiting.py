"""Bugs in what a queued job waits for, and in who is next."""
# ruff: noqa: ARG001, ARG005  a planted function takes what the true one takes

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

from holdfast.store import ladder
from holdfast.store.ladder import Waiting
from holdfast.store.sqlite import claims, finishes, holds, jobs, moves, rescues, tenants
from holdfast.store.sqlite.connection import Db
from holdfast.testing.simulation.mutants.planting import force, mutant, replace, rewrite, unkeyed


@mutant("no turn", unkeyed("holdfast_turn", "key TEXT, seq INTEGER"))
def _no_turn(stack: ExitStack) -> None:
    """neither the index nor promotion looks whether another job has the turn"""
    replace(stack, ladder, "_take_turn", lambda job, facts: job.ordered is not None)


@mutant("no slot", unkeyed("holdfast_slot", "key TEXT, slot INTEGER, seq INTEGER"))
def _no_slot(stack: ExitStack) -> None:
    """neither the index nor promotion looks whether a slot is taken"""
    replace(stack, ladder, "_take_slot", lambda job, facts: None if job.concurrency is None else 1)


@mutant("no turn check")
def _no_turn_check(stack: ExitStack) -> None:
    """promotion gives out turns that are taken; the index is still there"""
    replace(stack, ladder, "_take_turn", lambda job, facts: job.ordered is not None)


@mutant("no slot check")
def _no_slot_check(stack: ExitStack) -> None:
    """promotion gives out slots that are taken; the index is still there"""
    replace(stack, ladder, "_take_slot", lambda job, facts: None if job.concurrency is None else 1)


@mutant("turn out of order")
def _turn_out_of_order(stack: ExitStack) -> None:
    """a newcomer takes a free turn before those that wait for it"""
    replace(stack, moves, "_turn_taken", _turn_taken_only)
    replace(stack, moves, "_next_in_order", lambda *_: {})


def _turn_taken_only(db: Db, key: str, *, behind: bool) -> bool:
    return bool(db.value("SELECT 1 FROM holdfast_turn WHERE key = ?", key))


@mutant("an expired job keeps its keys")
def _expired_keeps_its_keys(stack: ExitStack) -> None:
    """a job that is over still holds its unique key and its slot"""
    original = moves.expire_queued

    def expire_queued(db: Db, seq: int) -> moves.Freed:
        with patch.object(moves, "let_go", lambda db, seq: moves.Freed(None, None)):
            return original(db, seq)

    replace(stack, holds, "expire_queued", expire_queued)


@mutant("nothing is passed on")
def _nothing_is_passed_on(stack: ExitStack) -> None:
    """whoever frees a turn or a slot promotes nobody, and repair does not either"""
    for place in (moves, finishes, rescues, jobs, holds):
        replace(stack, place, "pass_on", lambda *_, **__: 0)


@mutant("cancel passes nothing on")
def _cancel_passes_nothing_on(stack: ExitStack) -> None:
    """what a cancelled job held is free, and whoever waits for it is not told"""
    replace(stack, jobs, "pass_on", lambda *_, **__: 0)


@mutant("rescue passes nothing on")
def _rescue_passes_nothing_on(stack: ExitStack) -> None:
    """the slot of a job whose worker was lost is free, and whoever waits for it is not told"""
    replace(stack, rescues, "pass_on", lambda *_, **__: 0)


@mutant("no window")
def _no_window(stack: ExitStack) -> None:
    """promotion does not look how many jobs of a tenant are ready"""
    replace(stack, ladder, "_take_room", lambda job, facts, window: True)


@mutant("an unhold for one guard frees all")
def _unhold_frees_all(stack: ExitStack) -> None:
    """unhold does not look whose jobs it was asked to let go of"""
    rewrite(stack, ("q.gate = ?", "? IS NOT NULL"))


@mutant("promotion lets go of the held")
def _promotion_lets_go(stack: ExitStack) -> None:
    """a job that a guard holds is made ready with those that have arrived"""

    def look(db: Db, sql: str, **params: object) -> dict[str, Waiting]:
        return moves.look(db, sql.replace("q.held = 'arrived'", "q.held IN ('arrived', 'guard')"), **params)

    replace(stack, holds, "look", look)


@mutant("a retry keeps its place")
def _a_retry_keeps_its_place(stack: ExitStack) -> None:
    """what is put back goes before those that became ready since"""
    force(stack, finishes, "put_back", keep_rank=True)


@mutant("release goes to the back")
def _release_goes_to_the_back(stack: ExitStack) -> None:
    """what was not run loses its place"""
    force(stack, finishes, "put_back", keep_rank=False)


_CHECK = f"AND (q.tenant IS NULL OR NOT EXISTS ({moves.IS_PAUSED.replace('?', 'q.tenant')}))"


def _claim_of_paused(stack: ExitStack) -> None:
    for name in ("_READY", "_SUSPECT"):
        statement = getattr(claims, name)
        assert _CHECK in statement, "claims ask for pauses in other words: write the mutant anew"
        replace(stack, claims, name, statement.replace(_CHECK, ""))


@mutant("a claim ignores the pause")
def _a_claim_ignores_the_pause(stack: ExitStack) -> None:
    """what is ready when its tenant is paused stays ready, and is claimed"""
    _claim_of_paused(stack)
    replace(stack, tenants, "_hold_ready", lambda db, key: None)


@mutant("a promotion ignores the pause", kind="worker")
def _a_promotion_ignores_the_pause(stack: ExitStack) -> None:
    """what is due while its tenant is paused becomes ready, and is claimed"""
    _claim_of_paused(stack)
    replace(stack, ladder, "_is_paused", lambda job, facts: False)


@mutant("a resume forgets one")
def _a_resume_forgets_one(stack: ExitStack) -> None:
    """the tenant is forgotten with its first jobs, and what else was held for it stays held"""
    _forget(stack)


@mutant("a resume forgets one, of real workers", kind="worker")
def _a_resume_forgets_one_of_workers(stack: ExitStack) -> None:
    """the same"""
    _forget(stack)


def _forget(stack: ExitStack) -> None:
    def released(db: Db, limit: int) -> list[Waiting]:
        found: list[Waiting] = []
        for (key,) in db.rows("SELECT key FROM holdfast_tenant WHERE resumed_at IS NOT NULL"):
            found += moves.look(db, tenants._RELEASED, tenant=key, most=1).values()  # noqa: SLF001
            db.run("DELETE FROM holdfast_tenant WHERE key = ?", key)
        return found

    replace(stack, tenants, "released", released)
    replace(stack, tenants, "repair", lambda db: None)
