"""Bugs in who may run a job, and until when."""
# ruff: noqa: ARG001  a planted function takes what the true one takes

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.world import current
from holdfast.store.once import pair_of
from holdfast.store.records import Claim, Finish, Renewal
from holdfast.store.sqlite import claims, finishes, rescues, settling
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.transaction import SqliteTx
from holdfast.testing.simulation import worker
from holdfast.testing.simulation.mutants.planting import (
    beside,
    force,
    mutant,
    replace,
    rewrite,
    unfence,
)


@mutant("no fence")
def _no_fence(stack: ExitStack) -> None:
    """neither finish nor renew looks at the token"""
    unfence(stack)


@mutant("workers do not renew")
def _workers_do_not_renew(stack: ExitStack) -> None:
    """a worker trusts its first lease for ever"""

    async def nothing(self: worker.Worker, holdings: list[worker.Holding]) -> None:
        for holding in holdings:
            holding.until += 1000

    replace(stack, worker.Worker, "_renew", nothing)


@mutant("renew does nothing")
def _renew_does_nothing(stack: ExitStack) -> None:
    """renew answers yes and writes nothing"""

    def renew(db: Db, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
        return [Renewal(claim.job_id, claim.token, db.now + lease, None) for claim in claims]

    replace(stack, claims, "renew", renew)


@mutant("renew after the end")
def _renew_after_the_end(stack: ExitStack) -> None:
    """renew brings back a lease that has ended"""
    rewrite(stack, ("AND token = ? AND lease_until > ?", "AND token = ? AND ? IS NOT NULL"))


@mutant("early steal")
def _early_steal(stack: ExitStack) -> None:
    """rescue does not wait for the lease's end"""
    rewrite(stack, ("r.lease_until <= ?", "r.lease_until - 3 <= ?"))


@mutant("no rescue")
def _no_rescue(stack: ExitStack) -> None:
    """rescue finds nothing"""
    rewrite(stack, ("r.lease_until <= ?", "r.lease_until <= ? - 100000"))


@mutant("finish ignores tx")
def _finish_ignores_tx(stack: ExitStack) -> None:
    """a job succeeds before the rows of its transaction commit"""
    original = claims.Claims.finish

    async def finish(self: claims.Claims, ends: Any, *, tx: Any = None) -> list[bool]:
        if isinstance(tx, SqliteTx):
            return await tx.run(beside(partial(finishes.finish, finishes=tuple(ends))))
        return await original(self, ends)

    replace(stack, claims.Claims, "finish", finish)


@mutant("unknown is taken for refused")
def _unknown_is_taken_for_refused(stack: ExitStack) -> None:
    """a finish whose commit did not happen is answered as a lost claim"""

    async def settle_only(file: Any, ends: Any, lost: CommitUnknown, call: Any) -> list[bool]:
        pairs = [pair_of(item.claim) for item in ends]
        return [await file.read(partial(finishes.settle, job_id=pair[0], token=pair[1])) for pair in pairs]

    replace(stack, settling, "finished", settle_only)


@mutant("finish and claim in two commits")
def _two_commits(stack: ExitStack) -> None:
    """a crash between the two leaves the one without the other"""

    async def finish_and_claim(
        self: claims.Claims, ends: Any, wants: Any, *, lease: float, worker: str
    ) -> tuple[list[bool], list[Claim]]:
        return await self.finish(ends), await self.claim(wants, lease=lease, worker=worker)

    replace(stack, claims.Claims, "finish_and_claim", finish_and_claim)


@mutant("snooze is charged")
def _snooze_is_charged(stack: ExitStack) -> None:
    """a deferral costs an attempt"""
    force(stack, finishes, "put_back", uncharge=0)


@mutant("strikes are not counted")
def _strikes_are_not_counted(stack: ExitStack) -> None:
    """a job that kills its worker runs for ever"""
    rewrite(stack, ("strikes = ?", "strikes = 0 * ?"))
    replace(stack, rescues, "STRIKES_LIMIT", 1000)


@mutant("the client's clock")
def _the_clients_clock(stack: ExitStack) -> None:
    """times are read from the wall clock of whoever asks"""
    original = Db.begin

    def begin(db: Db, mode: str, *, hasty: bool = False) -> None:
        original(db, mode, hasty=hasty)
        db.now = current().now()

    replace(stack, Db, "begin", begin)


@mutant("only the first of a batch")
def _only_the_first_of_a_batch(stack: ExitStack) -> None:
    """of several finishes in one call the first is written, and all are acknowledged"""
    original = finishes.finish

    def finish(db: Db, finishes: Sequence[Finish], **how: Any) -> list[bool]:
        return original(db, finishes[:1], **how) * len(finishes)

    replace(stack, claims, "finish", finish)
