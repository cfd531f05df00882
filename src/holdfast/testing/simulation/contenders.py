"""Callers that contend: for a lease by name, which fences a register, and for an idempotency key."""

from __future__ import annotations

from functools import partial

from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.randomness import jittered, random
from holdfast.store.idempotency import KeyBusy, KeyClaim, KeyDone, KeyMismatch, KeyScope
from holdfast.store.records import Lease
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.history import REFUSALS
from holdfast.testing.simulation.plan import Op

TTL = 4.0
KEEP_ANSWER = 10_000.0
TROUBLE = (*REFUSALS, CommitUnknown)
_SCOPE = KeyScope("tenant", "person", "/orders")


async def hold_lease(life: Life, op: Op) -> None:
    """Take the lease, write to the register with its token, renew, and let go."""
    owner = f"{life.name}/{op.number}"
    try:
        lease = await _wait_for_lease(life, op, owner)
        if lease is None:
            return
        await life.history.call("get_lease", op.name, lambda: life.store.leases.get(op.name))
        if random() < 0.2:  # as after a lost answer: it is ours already, and we get a new token
            lease = await _wait_for_lease(life, op, owner) or lease
        for _ in range(3):
            await sleep(jittered(op.seconds * 0.8 + 0.1))  # sometimes longer than the lease
            await life.history.call("register", (op.name, lease.token), lambda: _write(life, lease))
            renewed = await life.history.call(
                "renew_lease", (op.name, lease.token), lambda: life.store.leases.renew(lease, ttl=TTL)
            )
            if renewed is None and not life.fleet.plan.deaf:
                break  # and let go all the same, as a `finally` does: the token keeps it from ending another's
        await life.history.call(
            "release_lease", (op.name, lease.token), lambda: life.store.leases.release(lease)
        )
    except TROUBLE:
        return


async def _wait_for_lease(life: Life, op: Op, owner: str) -> Lease | None:
    for _ in range(6):
        lease = await life.history.call(
            "acquire", (op.name, owner), lambda: life.store.leases.acquire(op.name, owner=owner, ttl=TTL)
        )
        if lease is not None:
            return lease
        await sleep(jittered(1.5))
    return None


async def _write(life: Life, lease: Lease) -> int:
    """A write that the register accepts unless it has seen a newer token: the lease alone protects nothing."""
    async with life.store.transaction() as tx:
        sql = "UPDATE sim_register SET token = $1, writer = $2 WHERE name = $3 AND token <= $1"
        return await tx.execute(sql, lease.token, lease.owner, lease.name)


async def steal_lease(life: Life, op: Op) -> None:
    try:
        await life.history.call(
            "steal", op.name, lambda: life.store.leases.steal(op.name, actor="operator", reason="simulated")
        )
    except TROUBLE:
        return


class _Lost(Exception):
    """The key is someone else's now: roll back."""


async def use_key(life: Life, op: Op) -> None:
    """Do once what the key stands for, however many ask; and everyone gets the same answer."""
    fingerprint = "other" if op.number % 7 == 0 else "same"
    for _ in range(12):
        try:
            answer = await life.history.call(
                "begin_key",
                (op.name, fingerprint),
                lambda: life.store.keys.begin(_SCOPE, op.name, fingerprint=fingerprint, lease=TTL),
            )
            match answer:
                case KeyDone() | KeyMismatch():
                    return
                case KeyBusy():
                    await sleep(jittered(1.0))
                case KeyClaim() if random() < 0.15:
                    claim = (op.name, answer.token)
                    await life.history.call("abandon_key", claim, partial(life.store.keys.abandon, answer))
                    return
                case KeyClaim():
                    await sleep(op.seconds)
                    do = partial(_do, life, op, answer)
                    await life.history.call("finish_key", (op.name, answer.token), do)
                    return
        except _Lost:
            return
        except TROUBLE:
            await sleep(jittered(0.5))  # and begin again: the key knows


async def _do(life: Life, op: Op, claim: KeyClaim) -> bool:
    async with life.store.transaction() as tx:
        await tx.execute(
            "INSERT INTO sim_row (op, kind, job_id) VALUES ($1, 'keyed', $2)", op.number, op.name
        )
        if not await life.store.keys.finish(claim, str(op.number), keep=KEEP_ANSWER, tx=tx):
            raise _Lost
    return True
