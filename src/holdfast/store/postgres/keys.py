"""Idempotency keys: one does it, the others are told what was answered."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import StoreUnavailable, UsageError
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
from holdfast.store.postgres.subject import Subject
from holdfast.store.postgres.transaction import PostgresTx
from holdfast.store.records import ABANDONED
from holdfast.store.statements import Procedure, Statement

Begun: TypeAlias = KeyClaim | KeyDone | KeyBusy | KeyMismatch
_LOOKS = 10  # for a key that is freed just as we look at it
_THIS = "k.tenant = $1::text AND k.principal = $2::text AND k.route = $3::text AND k.key = $4::text"


def begin(
    scope: KeyScope, key: str, *, fingerprint: str, lease: float, alone: bool = False
) -> Procedure[Begun]:
    """`alone`: each statement commits itself, and need not wait for the disk.

    A server that crashes forgets the claim, and with it all that its holder has stored since: `finish` finds no such token.
    """
    name = (scope.tenant, scope.principal, scope.route, key)
    for _ in range(_LOOKS):
        for token, until in (yield Statement(_BEGIN[alone], (*name, fingerprint, float(lease)))):
            return KeyClaim(scope, key, token, until)
        for known, until, response in (yield Statement(_LOOK, name)):
            if known != fingerprint:
                return KeyMismatch()
            return KeyBusy(until) if response is None else KeyDone(response)
    raise StoreUnavailable(
        f"The key {key!r} was taken and freed {_LOOKS} times. Nothing was stored; try again."
    )


# Taken when it is new, when its answer was kept long enough, or when the holder's lease has ended.
_BEGIN = {
    alone: f"""
INSERT INTO holdfast.key AS k (tenant, principal, route, key, fingerprint, token, until)
SELECT $1::text, $2::text, $3::text, $4::text, $5::text, nextval('holdfast.token'),
    holdfast.now() + make_interval(secs => $6::float8)
WHERE {"set_config('synchronous_commit', 'off', true) = 'off'" if alone else "true"}
ON CONFLICT (tenant, principal, route, key) DO UPDATE SET fingerprint = excluded.fingerprint,
    token = nextval('holdfast.token'), until = holdfast.now() + make_interval(secs => $6::float8), response = NULL
WHERE k.until <= holdfast.now() AND (k.response IS NOT NULL OR k.fingerprint = excluded.fingerprint)
RETURNING token, date_part('epoch', until)"""
    for alone in (False, True)
}
_LOOK = f"SELECT k.fingerprint, date_part('epoch', k.until), k.response FROM holdfast.key k WHERE {_THIS}"


def finish(claim: KeyClaim, response: str, *, keep: float) -> Procedure[bool]:
    return bool((yield Statement(_FINISH, (*_name(claim), claim.token, response, float(keep)))))


_FINISH = f"""
UPDATE holdfast.key k SET response = $6::text, until = holdfast.now() + make_interval(secs => $7::float8)
WHERE {_THIS} AND k.token = $5::bigint AND k.response IS NULL RETURNING k.token"""


def abandon(claim: KeyClaim) -> Procedure[bool]:
    sql = f"DELETE FROM holdfast.key k WHERE {_THIS} AND k.token = $5::bigint AND k.response IS NULL RETURNING k.token"
    return bool((yield Statement(sql, (*_name(claim), claim.token))))


def prune(limit: int) -> Procedure[int]:
    return len((yield Statement(_PRUNE, (limit, ABANDONED))))


_PRUNE = """
DELETE FROM holdfast.key WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM holdfast.key WHERE until <= (SELECT holdfast.now())
        AND (response IS NOT NULL OR until <= (SELECT holdfast.now()) - make_interval(secs => $2))
    ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING token"""


def _name(claim: KeyClaim) -> tuple[str, str, str, str]:
    return claim.scope.tenant, claim.scope.principal, claim.scope.route, claim.key


@checked
class Keys(Subject):
    async def begin(
        self, scope: KeyScope, key: str, *, fingerprint: str, lease: float, tx: object | None = None
    ) -> Begun:
        make = partial(begin, scope, key, fingerprint=fingerprint, lease=lease, alone=tx is None)
        if (executor := await self._executor(tx)) is None:
            return await self._database.write(make)
        return await executor.run(make())

    async def enter(
        self, tx: object, scope: KeyScope, key: str, *, fingerprint: str, lease: float, wait: float
    ) -> Begun:
        if not isinstance(tx, PostgresTx):
            raise UsageError(NOT_ONE_OF_OURS)
        await tx.__aenter__()
        try:
            async with timeout(wait):
                return await tx.run(begin(scope, key, fingerprint=fingerprint, lease=lease))
        except TimeoutError:
            return KeyBusy(0.0)
        except BaseException as error:
            await tx.__aexit__(type(error), error, error.__traceback__)
            raise

    async def answer(self, claim: KeyClaim, response: str, *, keep: float, tx: object | None = None) -> None:
        if not await self.finish(claim, response, keep=keep, tx=tx):
            raise KeyLost(LOST)

    async def finish(self, claim: KeyClaim, response: str, *, keep: float, tx: object | None = None) -> bool:
        make = partial(finish, claim, response, keep=keep)
        if (executor := await self._executor(tx)) is None:
            return await self._database.write(make)
        return await executor.run(make())

    async def abandon(self, claim: KeyClaim) -> bool:
        return await self._database.write(partial(abandon, claim))

    async def prune(self, *, limit: int = 1000) -> int:
        return await self._database.write(partial(prune, limit), repeatable=True)
