"""`hf.tenants`: pause tenants and resume them, for the whole fleet."""

from __future__ import annotations

from typing import Any

from holdfast.jobs.blocking import inner
from holdfast.kernel.awaits import must_await_all
from holdfast.store.ports import Store
from holdfast.store.records import PausedTenant


@must_await_all("hf.tenants")
class TenantsView:
    """Hold all jobs of a tenant, with words that say why, and let them go again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def pause(self, key: str, *, reason: str, by: str = "code", tx: Any = None) -> None:
        """No job of the tenant is claimed from the commit on; what runs goes on. A tenant that is paused stays as it is.

        Its jobs are held as `paused` when they are due, and say `reason`. With `tx` it is paused when that transaction commits.
        """
        await self._store.tenants.pause(key, reason=reason, by=by, tx=inner(tx))

    async def resume(self, key: str, *, by: str = "code", tx: Any = None) -> None:
        """Let its jobs go in the order in which they became due. A tenant that is not paused stays as it is."""
        await self._store.tenants.resume(key, by=by, tx=inner(tx))

    async def paused(self) -> list[PausedTenant]:
        """Which tenants are paused, why, by whom and since when; the longest pause first."""
        return await self._store.tenants.paused()
