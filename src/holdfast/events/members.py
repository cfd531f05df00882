"""The members of groups tell each other what they hear: two versions of a program may run at once, during a deploy."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.events.routes import written
from holdfast.events.subscribers import Group
from holdfast.kernel.errors import TROUBLE
from holdfast.kernel.service import Periodic
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store

EVERY = 10.0  # seconds
TTL = 60.0  # seconds for which a member that is not heard of is still counted


class Members(Periodic):
    """A service of every worker: what its groups hear, said again and again while it runs."""

    def __init__(self, store: Store, groups: Sequence[Group], *, member: str) -> None:
        super().__init__("members", self.announce, every=EVERY)
        self._store, self._groups, self._member = store, groups, member

    async def start(self) -> None:
        """Said before anything is read: from then on whoever reads for a group knows what this member hears."""
        try:
            await self.announce()
        except TROUBLE as error:
            note("periodic.failed", name="members", error=repr(error))
        await super().start()

    async def announce(self) -> None:
        for group in self._groups:
            await self._store.groups.announce(group.name, self._member, written(group.routes), ttl=TTL)

    async def stop(self) -> None:
        """What only this one hears is not waited for."""
        await super().stop()
        try:
            for group in self._groups:
                await self._store.groups.announce(group.name, self._member, None, ttl=TTL)
        except TROUBLE as error:  # it is forgotten after its time
            note("periodic.failed", name="members", error=repr(error))
