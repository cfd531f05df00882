"""The verbs about blobs: their rows. The bytes are elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.store.blob_records import BlobRow, BlobState, NewBlob, Usage


class Blobs(Protocol):
    async def add(self, blob: NewBlob, *, tx: object | None = None) -> BlobRow | None:
        """A kept blob that is not settled yet. None: the name is taken, also by one that is deleted."""

    async def get(self, name: str) -> BlobRow | None: ...
    async def find(
        self, *, prefix: str = "", after: str = "", state: BlobState | None = None, limit: int = 100
    ) -> list[BlobRow]:
        """By name, after the name `after`."""

    async def usage(self, *, prefix: str = "", tx: object | None = None) -> Usage:
        """Of all that are not deleted or missing. Within `tx` it holds until that ends: nobody else counts these in a transaction meanwhile."""

    async def change(
        self,
        name: str,
        to: BlobState,
        *,
        of: Sequence[BlobState],
        reason: str | None = None,
        tx: object | None = None,
    ) -> BlobRow | None:
        """Give it another state, when it has one of these. None: it has none of them, or is not there."""

    async def move(self, name: str, *, source: str, target: str) -> bool:
        """Its object is `target` from now on. False: it is not `source` any more."""

    async def settle(self, row: BlobRow) -> bool:
        """Everything that its state asks for is done; False: its state or its object is another by now."""

    async def unsettled(self, *, older: float, limit: int = 100) -> list[BlobRow]:
        """Those that wait for longer than so many seconds."""

    async def known(self, objects: Sequence[str]) -> set[str]:
        """Those of them that belong to a row."""

    async def purge(self, *, keep: float, limit: int = 100) -> list[BlobRow]:
        """Those that were deleted more than so many seconds ago cannot be restored from now on, and their objects are to be removed."""

    async def forget(self, row: BlobRow) -> bool:
        """Remove the row of one that is purged, when its object is gone."""
