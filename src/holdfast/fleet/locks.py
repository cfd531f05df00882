"""A lock that a whole fleet respects: a lease with a token, renewed while it is held."""

from __future__ import annotations

import asyncio
from types import TracebackType

from holdfast.kernel.awaits import Block
from holdfast.kernel.clock import look_after, monotonic, patience, sleep
from holdfast.kernel.errors import HoldfastError, LockHeld, LockLost, UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.names import check_seconds
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import spawn
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store
from holdfast.store.records import Lease

_MARGIN = 1 / 4  # of the lease: who could not renew it is stopped this long before its end
_GOODBYE = 5.0  # seconds for giving it back; it ends by itself
_FIRST_LOOK, _LAST_LOOK = 0.02, 0.5  # seconds between tries, growing


class Lock:
    """`async with hf.lock("report:2026-11", lease=30) as lease:` and `lease.token` fences what is written under it.

    Waits at most `wait` seconds for the lock, then raises LockHeld. When the lock is lost meanwhile, or
    its store falls silent until its end is near, the block is cancelled, and leaving it raises LockLost.
    """

    def __init__(self, store: Store, name: str, *, lease: float, wait: float, block: Block) -> None:
        self._store, self._name, self._block = store, name, block
        self._ttl = check_seconds("lease", lease, minimum=0.1, maximum=86_400)
        self._wait = check_seconds("wait", wait)
        self._is_entered = False
        self._lease: Lease | None = None
        self._until = 0.0
        self._keeper: asyncio.Task[None] | None = None
        self._holder: asyncio.Task[object] | None = None
        self._has_cancelled = False
        self._cancels_before = 0

    async def __aenter__(self) -> Lease:
        if self._is_entered:
            raise UsageError(
                f"This object for the lock {self._name!r} is in use. Call hf.lock({self._name!r}) for each block."
            )
        self._is_entered = self._block.is_entered = True
        try:
            return await self._enter()
        except BaseException:
            self._is_entered = False
            raise

    async def _enter(self) -> Lease:
        began, owner = monotonic(), new_id()
        give_up, pause = began + self._wait, _FIRST_LOOK
        while (held := await self._store.leases.acquire(self._name, owner=owner, ttl=self._ttl)) is None:
            if monotonic() >= give_up:
                raise LockHeld(
                    f"The lock {self._name!r} is held by another. Try again, or wait longer with wait=."
                )
            await look_after(jittered(min(pause, max(0.0, give_up - monotonic()))))
            pause, began = min(pause * 1.5, _LAST_LOOK), monotonic()
        self._lease, self._until = held, began + self._ttl
        self._holder, self._has_cancelled = asyncio.current_task(), False
        self._cancels_before = 0 if self._holder is None else self._holder.cancelling()
        self._keeper = spawn(self._keep(), name=f"lock:{self._name}")
        return held

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._keeper is not None
        self._keeper.cancel()
        self._is_entered = False
        only_ours = self._take_back_cancel()
        held, self._lease = self._lease, None
        if held is not None and await self._release(held):
            return
        if error is None or (only_ours and isinstance(error, asyncio.CancelledError)):
            raise LockLost(
                f"The lock {self._name!r} was lost before the block's end: another may hold it now. "
                "Do less under it, or give it a longer lease."
            ) from error

    def _take_back_cancel(self) -> bool:
        """Whether we have cancelled the holder, and nobody else: a cancellation by others must reach who waits for it."""
        if not self._has_cancelled or self._holder is None:
            return False
        return self._holder.uncancel() <= self._cancels_before

    async def _release(self, held: Lease) -> bool:
        in_time = monotonic() < self._until
        try:
            async with patience(_GOODBYE):
                return await self._store.leases.release(held)
        except (HoldfastError, TimeoutError) as error:  # it ends by itself
            note("lock.not_released", lock=self._name, error=repr(error))
            return in_time

    async def _keep(self) -> None:
        """Renew at a third of the lease; when that fails until its end is near, stop whoever works under it."""
        pause = self._until - self._ttl * 2 / 3 - monotonic()
        while self._lease is not None:
            await sleep(max(0.0, pause))
            began = monotonic()
            try:
                renewed = await self._renew(self._lease, self._until - self._ttl * _MARGIN - began)
            except (HoldfastError, TimeoutError) as error:
                note("lock.not_renewed", lock=self._name, error=repr(error))
                pause = self._ttl / 30
                if monotonic() + pause < self._until - self._ttl * _MARGIN:
                    continue
                renewed = None
            if renewed is None:
                self._lose()
                return
            self._until, pause = began + self._ttl, self._ttl / 3

    async def _renew(self, lease: Lease, left: float) -> Lease | None:
        """In time, for a store that does not answer is no reason to go on. A try is shorter: the next has a new connection."""
        async with patience(min(self._ttl / 3, max(0.0, left))):
            return await self._store.leases.renew(lease, ttl=self._ttl)

    def _lose(self) -> None:
        self._lease = None
        note("lock.lost", lock=self._name)
        if self._holder is not None:
            self._has_cancelled = True
            self._holder.cancel()
