"""What a store can do with views: rows that projections make of events, and versions for whoever compares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.store.records import Lease
from holdfast.store.view_records import Aside, Checkpoint, Loaded, ViewBatch, ViewRow


class Views(Protocol):
    async def begin(self, view: str, *, start: int, history: bool = False) -> Checkpoint | None:
        """Say that somebody runs it. The first time its first generation is made, which reads what is behind `start`.

        Returns the generation that serves. `history`: from now on events are kept for it, back to where it began.
        None: it would be made, and events behind `start` are gone by now; nothing was written.
        """

    async def checkpoints(self, *, view: str | None = None, limit: int = 100) -> list[Checkpoint]:
        """The generations that are built or that serve, by view and number."""

    async def get(self, view: str, key: str) -> ViewRow | None:
        """Of the generation that serves. A deleted row has no data; None: there never was one, or it is long deleted."""

    async def find(
        self, view: str, *, prefix: str = "", after: str | None = None, limit: int = 100
    ) -> list[ViewRow]:
        """Those that are there, of the generation that serves, by key. `after`: only keys behind this one."""

    async def load(self, view: str, generation: int, keys: Sequence[str]) -> Loaded:
        """The rows of these keys in one generation, for the batch that goes on from them."""

    async def apply(self, lease: Lease, batch: ViewBatch) -> bool:
        """Keep rows and checkpoint in one commit. No row goes back to an older position.

        False: the lease is lost, the checkpoint is no longer where the batch was made from, the generation is over, or the log has
        another event where the batch ends (a server that has crashed since may have given its position away); nothing was written.
        """

    async def begin_rebuild(self, view: str, *, start: int, actor: str) -> Checkpoint | None:
        """Make the next generation, beside the one that serves; one that is being built already is given up.

        Leaves an audit row. None: there is no such view, or events behind `start` are gone by now; nothing was written.
        """

    async def switch(self, lease: Lease, view: str, generation: int) -> bool:
        """Let the generation that is built serve from now on.

        False: the lease is lost, it is not as far as the one that serves, or a row would go back because an event of it is
        set aside in the new one.
        """

    async def aside(
        self,
        view: str,
        *,
        generation: int | None = None,
        key: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Aside]:
        """Events that are set aside, by position; of the generation that serves unless another is named.

        `key`: only those that this row waits for.
        """

    async def count_aside(self, view: str, *, generation: int | None = None, limit: int) -> int:
        """How many events are set aside, counted up to `limit`: none of them is read."""

    async def forget(self, view: str, *, actor: str) -> bool:
        """Give up a view that nobody runs any more, with its rows, so that no events are kept for it; leaves an audit row."""

    async def prune(self, *, limit: int = 1000) -> int:
        """Forget rows of generations that are over, and of what was deleted long ago."""


class Versions(Protocol):
    """Who compares versions: writers that expect one, and readers that go by the newest they have seen."""

    async def hold(self, key: str, *, tx: object | None = None) -> int:
        """The newest version of a key; nobody else can raise it until the transaction has ended. 0: it has none."""

    async def advance(self, reader: str, key: str, version: int, *, tx: object | None = None) -> bool:
        """Remember that the reader has seen this version of the key. False: it has seen it, or a newer one."""

    async def seen(self, reader: str, key: str, *, tx: object | None = None) -> int:
        """The newest version that the reader has seen; 0: none."""

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        """Forget what readers have seen more than `keep` seconds ago."""
