"""A lock that a whole fleet respects: a lease with a token, renewed while it is held."""

from __future__ import annotations

import asyncio
from types import TracebackType

from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.errors import HoldfastError, LeaseLost, LockHeld
from holdfast.kernel.ids import new_id
from holdfast.kernel.names import check_seconds
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import spawn
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store
from holdfast.store.records import Lease

_FIRST_LOOK, _LAST_LOOK = 0.02, 0.5  # seconds between tries, growing


class Lock:
    """`async with hf.lock("report:2026-11", lease=30) as lease:` and `lease.token` fences what is written under it.

    Waits at most `wait` seconds for the lock, then raises LockHeld. Leaving raises LeaseLost when it was lost meanwhile.
    """

    def __init__(self, store: Store, name: str, *, lease: float, wait: float) -> None:
        self._store, self._name = store, name
        self._ttl = check_seconds("lease", lease, minimum=0.1, maximum=86_400)
        self._wait = check_seconds("wait", wait)
        self._owner = new_id()
        self._lease: Lease | None = None
        self._until = 0.0
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Lease:
        began = monotonic()
        give_up, pause = began + self._wait, _FIRST_LOOK
        while (
            held := await self._store.leases.acquire(self._name, owner=self._owner, ttl=self._ttl)
        ) is None:
            if monotonic() >= give_up:
                raise LockHeld(
                    f"The lock {self._name!r} is held by another. Try again, or wait longer with wait=."
                )
            await sleep(jittered(min(pause, max(0.0, give_up - monotonic()))))
            pause, began = min(pause * 1.5, _LAST_LOOK), monotonic()
        self._lease, self._until = held, began + self._ttl
        self._keeper = spawn(self._keep(asyncio.current_task()), name=f"lock:{self._name}")
        return held

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._keeper is not None
        self._keeper.cancel()
        held, self._lease = self._lease, None
        if held is not None and await self._release(held):
            return
        if error is None or isinstance(error, asyncio.CancelledError):
            raise LeaseLost(
                f"The lock {self._name!r} was lost before the block's end: another may hold it now."
            )

    async def _release(self, held: Lease) -> bool:
        try:
            return await self._store.leases.release(held)
        except HoldfastError as error:  # it ends by itself
            note("lock.not_released", lock=self._name, error=repr(error))
            return monotonic() < self._until

    async def _keep(self, holder: asyncio.Task[object] | None) -> None:
        """Renew at a third of the lease; when that fails until its end is near, stop whoever works under it."""
        while self._lease is not None:
            await sleep(self._ttl / 3)
            began = monotonic()
            try:
                renewed = await self._store.leases.renew(self._lease, ttl=self._ttl)
            except HoldfastError as error:
                note("lock.not_renewed", lock=self._name, error=repr(error))
                if monotonic() < self._until - self._ttl / 3:
                    continue
                renewed = None
            if renewed is None:
                self._lease = None
                note("lock.lost", lock=self._name)
                if holder is not None:
                    holder.cancel()
                return
            self._until = began + self._ttl
