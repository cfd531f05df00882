"""One process of the fleet looks every few seconds, and enqueues what tells of the changes in the transaction that keeps them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from holdfast.fleet.leading import TTL, Leading
from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import LeaseLost
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.observe.alerts.alert import Alert
from holdfast.observe.alerts.changes import Changes, compare
from holdfast.observe.alerts.looking import Looker
from holdfast.observe.alerts.settings import AlertSettings
from holdfast.store.alert_records import AlertRecord, Looked
from holdfast.store.ports import Store, Tx
from holdfast.store.records import Lease

LEASE_NAME = "holdfast:alerts"
KEPT = 30 * 86_400.0  # seconds for which alerts that are over are kept
_PRUNE_EVERY = 600.0
Tell = Callable[[Sequence[Alert], Tx], Awaitable[None]]


class Watch(Leading):
    """What holds is in the database, put there by whatever caused it. So a look that fails, or dies, loses nothing: the next one sees it."""

    def __init__(
        self,
        store: Store,
        looker: Looker,
        settings: AlertSettings,
        tell: Tell,
        *,
        owner: str,
        ttl: float = TTL,
    ) -> None:
        super().__init__("alerts", store, lease=LEASE_NAME, owner=owner, ttl=ttl)
        self._looker, self._settings, self._tell = looker, settings, tell
        self._prune_at = 0.0

    async def _serve(self, lease: Lease) -> None:
        while True:
            more = await self.turn(lease)
            self._trouble = None
            await self._prune()
            if not more:
                await sleep(jittered(self._settings.every))

    async def turn(self, lease: Lease) -> bool:
        """One look, and what follows from it. True: there is more to tell at once."""
        looked = await self._looker.look()
        if not self._compared(await self._store.alerts.standing(), looked, await self._store.now()).rows:
            return False  # most of the time: nothing is written
        crashpoint("alerts.looked")
        async with self._store.transaction() as tx:
            standing = await self._store.alerts.standing(lease, tx=tx)
            if standing is None:
                raise LeaseLost(f"the lease {LEASE_NAME!r} is over")
            changes = self._compared(standing, looked, await self._store.now())
            await self._store.alerts.write(changes.rows, tx=tx)
            if changes.alerts:
                await self._tell(changes.alerts, tx)
            crashpoint("alerts.before_commit")
        for alert in changes.alerts:
            note(
                "alert.told",
                alert=alert.id,
                kind=alert.kind,
                cause=alert.cause,
                state=alert.state,
                number=alert.number,
            )
        return changes.more

    def _compared(self, standing: Sequence[AlertRecord] | None, looked: Looked, now: float) -> Changes:
        return compare(standing or (), looked, now=now, again=self._settings.again, calm=self._settings.calm)

    async def _prune(self) -> None:
        if monotonic() >= self._prune_at:
            self._prune_at = monotonic() + _PRUNE_EVERY
            await self._store.alerts.prune(keep=KEPT)
