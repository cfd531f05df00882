"""`hf.flags`: what people decide while the program runs."""

from __future__ import annotations

from typing import Any

from holdfast.fleet.flags import FlagCopy
from holdfast.jobs.blocking import inner
from holdfast.kernel.awaits import must_await_all
from holdfast.store.flag_records import FlagRecord
from holdfast.store.ports import Store


@must_await_all("hf.flags")
class ProgramFlags:
    """Set flags, take them back, and list them. `await hf.flag("name")` asks for one."""

    def __init__(self, store: Store, copy: FlagCopy) -> None:
        self._store, self._copy = store, copy

    async def set(
        self,
        name: str,
        value: bool,
        *,
        tenant: str | None = None,
        by: str = "code",
        reason: str = "",
        tx: Any = None,
    ) -> None:
        """Every process hears of it within two seconds, this one at once. With `tenant` it is for that one alone."""
        await self._store.flags.set(name, value, tenant=tenant, actor=by, reason=reason, tx=inner(tx))
        if tx is None:
            await self._copy.look()

    async def unset(
        self, name: str, *, tenant: str | None = None, by: str = "code", reason: str = "", tx: Any = None
    ) -> bool:
        """Take a decision back: the default counts again, or for a tenant what counts for everyone. False: there was none."""
        done = await self._store.flags.unset(name, tenant=tenant, actor=by, reason=reason, tx=inner(tx))
        if tx is None:
            await self._copy.look()
        return done

    async def list(self) -> list[FlagRecord]:
        """All that are set, in the order of their names."""
        return await self._copy.find()
