"""What all faults have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.fleet import Size
from chaos.place import STORES, Place
from chaos.settings import LEASE, SCAN
from chaos.world import World


class Fault(ABC):
    """One kind of trouble. `inject` makes it once, or to a group at once, and says how often that was."""

    name = ""
    stores: tuple[str, ...] = STORES
    from_the_end = True  # the time to recover counts from the end of an injection; else from its beginning
    limit = LEASE + SCAN  # seconds within which the interrupted work must have run again

    newer: frozenset[str] = frozenset()  # tasks that only some workers know: their jobs wait for those

    def size(self, usual: Size) -> Size:
        """The fleet that it needs."""
        return usual

    @asynccontextmanager
    async def around(self, place: Place) -> AsyncIterator[None]:
        """Before anything is started, and after all have left."""
        yield

    @abstractmethod
    async def inject(self, world: World) -> int: ...

    def is_over(self, world: World, injections: int, wanted: int) -> bool:
        """Whether there were enough of them."""
        return injections >= wanted

    async def heal(self, world: World) -> None:  # noqa: B027  most leave nothing behind
        """After the last one."""
