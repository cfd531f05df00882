"""Which brokers carry the events of a database: programs may share it, and a relay without a broker leaves them to those who have it."""

from __future__ import annotations

from holdfast.events.wire import Wire
from holdfast.kernel.telemetry import note
from holdfast.store.event_records import READER_KEPT
from holdfast.store.ports import Store

_NAME = "holdfast:relay"  # the brokers are its members, as workers are those of a group


class Wires:
    """Seen by one relay. A broker is remembered while its own workers are away: else another's relay would mark, unsent, what waits for it."""

    def __init__(self, store: Store, own: Wire | None) -> None:
        self._store, self._own = store, own
        self._is_told, self._left_to = False, list[str]()

    async def tell(self) -> None:
        """That the events go through the broker of this program."""
        if self._own is not None:
            await self._store.groups.announce(_NAME, self._own.name, self._own.name, ttl=READER_KEPT)
            self._is_told = True

    async def has_better(self) -> bool:
        """Whether others have a broker, and this program has none: what they publish, its own groups read in the database."""
        if self._own is not None:
            if not self._is_told:  # who publishes without it would go on
                await self.tell()
            return False
        found = await known(self._store)
        if found and found != self._left_to:
            note("relay.left_to_others", brokers=", ".join(found))
        self._left_to = found
        return bool(found)


async def known(store: Store) -> list[str]:
    return await store.groups.announced(_NAME)


async def forget(store: Store, broker: str) -> None:
    await store.groups.announce(_NAME, broker, None, ttl=READER_KEPT)
