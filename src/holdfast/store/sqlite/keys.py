"""Idempotency keys: one does it, the others are told what was answered."""

from __future__ import annotations

from functools import partial

from holdfast.kernel.errors import UsageError
from holdfast.store.edge import checked
from holdfast.store.idempotency import (
    LOST,
    NOT_ONE_OF_OURS,
    KeyBusy,
    KeyClaim,
    KeyDone,
    KeyLost,
    KeyMismatch,
    KeyScope,
)
from holdfast.store.records import ABANDONED
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.subject import Subject
from holdfast.store.sqlite.transaction import SqliteTx

_THIS = "tenant = ? AND principal = ? AND route = ? AND key = ?"


def begin(
    db: Db, scope: KeyScope, key: str, *, fingerprint: str, lease: float
) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
    name = (scope.tenant, scope.principal, scope.route, key)
    row = db.row(f"SELECT fingerprint, until, response FROM holdfast_key WHERE {_THIS}", *name)
    if row is not None:
        known, until, response = row
        if response is not None and until <= db.now:
            row = None  # the answer was kept long enough: the key is new again
        elif known != fingerprint:
            return KeyMismatch()
        elif response is not None:
            return KeyDone(response)
        elif until > db.now:
            return KeyBusy(until)
    claim = KeyClaim(scope, key, db.draw("token"), db.now + lease)
    sql = """INSERT INTO holdfast_key (tenant, principal, route, key, fingerprint, token, until)
        VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
        fingerprint = excluded.fingerprint, token = excluded.token, until = excluded.until, response = NULL"""
    db.run(sql, *name, fingerprint, claim.token, claim.until)
    return claim


def finish(db: Db, claim: KeyClaim, response: str, *, keep: float) -> bool:
    sql = f"UPDATE holdfast_key SET response = ?, until = ? WHERE {_THIS} AND token = ? AND response IS NULL"
    return bool(db.run(sql, response, db.now + keep, *_name(claim), claim.token))


def _answer(db: Db, claim: KeyClaim, response: str, *, keep: float) -> None:
    if not finish(db, claim, response, keep=keep):
        raise KeyLost(LOST)


def abandon(db: Db, claim: KeyClaim) -> bool:
    sql = f"DELETE FROM holdfast_key WHERE {_THIS} AND token = ? AND response IS NULL"
    return bool(db.run(sql, *_name(claim), claim.token))


def prune(db: Db, *, limit: int) -> int:
    sql = """DELETE FROM holdfast_key WHERE (tenant, principal, route, key) IN
        (SELECT tenant, principal, route, key FROM holdfast_key
         WHERE until <= iif(response IS NULL, ?, ?) ORDER BY until LIMIT ?)"""
    return db.run(sql, db.now - ABANDONED, db.now, limit)


def _name(claim: KeyClaim) -> tuple[str, str, str, str]:
    return claim.scope.tenant, claim.scope.principal, claim.scope.route, claim.key


@checked
class Keys(Subject):
    async def begin(
        self, scope: KeyScope, key: str, *, fingerprint: str, lease: float, tx: object | None = None
    ) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
        """In haste: a machine that crashes takes the holder with it, and what the holder stores before keeps its claim, too."""
        call = partial(begin, scope=scope, key=key, fingerprint=fingerprint, lease=lease)
        return await self._file.write(call, tx=tx, hasty=True)

    async def enter(
        self,
        tx: object,
        scope: KeyScope,
        key: str,
        *,
        fingerprint: str,
        lease: float,
        wait: float,  # noqa: ARG002  whoever has the key in a transaction has the write lock, too
    ) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
        call = partial(begin, scope=scope, key=key, fingerprint=fingerprint, lease=lease)
        if not isinstance(tx, SqliteTx):
            raise UsageError(NOT_ONE_OF_OURS)
        return await tx.enter_with(call)

    async def answer(self, claim: KeyClaim, response: str, *, keep: float, tx: object | None = None) -> None:
        call = partial(_answer, claim=claim, response=response, keep=keep)
        if isinstance(tx, SqliteTx):
            tx.do_last(call)
        else:
            await self._file.write(call, tx=tx)

    async def finish(self, claim: KeyClaim, response: str, *, keep: float, tx: object | None = None) -> bool:
        return await self._file.write(partial(finish, claim=claim, response=response, keep=keep), tx=tx)

    async def abandon(self, claim: KeyClaim) -> bool:
        return await self._file.write(partial(abandon, claim=claim))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._file.write(partial(prune, limit=limit), repeatable=True)
