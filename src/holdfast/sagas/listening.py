"""Wakes sagas that wait for events: one process at a time reads the log, and moves on in the commit that wakes them."""

from __future__ import annotations

from holdfast.fleet.leading import TTL, Leading
from holdfast.kernel.errors import LeaseLost
from holdfast.kernel.randomness import jittered
from holdfast.store.bell import LOG
from holdfast.store.ports import Store
from holdfast.store.records import Lease

LEASE_NAME = "holdfast:sagas"
BATCH = 500  # events of one commit
_POLL = 1.0  # seconds between looks at the log without a hint


class Listener(Leading):
    """A service of every worker of a program with sagas; whoever holds the lease does it."""

    def __init__(self, store: Store, *, owner: str, ttl: float = TTL) -> None:
        super().__init__("sagas", store, lease=LEASE_NAME, owner=owner, ttl=ttl)

    async def _serve(self, lease: Lease) -> None:
        while True:
            more = await self.turn(lease)
            self._trouble = None
            if not more:
                await self._store.wakeups.wait((LOG,), jittered(_POLL))

    async def turn(self, lease: Lease) -> bool:
        """Read some events; whether there may be more."""
        heard = await self._store.sagas.hear(lease, limit=BATCH)
        if heard is None:
            raise LeaseLost("Another reads events for sagas now.")
        return heard > 0
