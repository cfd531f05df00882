"""Read blobs: what is known of them, their bytes, links to them, and lists."""

from __future__ import annotations

from holdfast.blobs.errors import BlobMissing, BlobQuarantined
from holdfast.blobs.keys import check_key, check_prefix
from holdfast.blobs.port import Link, Reading
from holdfast.blobs.records import Blob
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.errors import UsageError
from holdfast.runtime.blobs.base import Base, shown
from holdfast.runtime.blobs.settling import settle
from holdfast.store.blob_checks import check_state_if_given
from holdfast.store.blob_records import BlobRow, BlobState, Usage

_AT_ONCE = 64 * 1024 * 1024  # bytes that `read` takes into memory


@must_await_all("hf.blobs")
class Reads(Base):
    async def get(self, key: str) -> Blob | None:
        """What is known of it, whatever its state; None: there is none."""
        row = await self._program.store.blobs.get(self._name(key))
        return None if row is None else shown(row)

    async def read(self, key: str, *, start: int = 0, end: int | None = None) -> bytes:
        """Its bytes, or those from `start` to before `end`, at most 64 MB. `open` streams."""
        reading = await self.open(key, start=start, end=end)
        try:
            if reading.size > _AT_ONCE:
                raise UsageError(
                    f"{reading.size:,} bytes are too many for the memory. Stream them: hf.blobs.open({key!r})."
                )
            return b"".join([piece async for piece in reading])
        finally:
            await reading.aclose()

    async def open(self, key: str, *, start: int = 0, end: int | None = None) -> Reading:
        """`async for piece in await hf.blobs.open(key):` its bytes, in pieces of about a megabyte."""
        row = await self._readable(key)
        try:
            return await self._place().get(row.object, start=start, end=end)
        except BlobMissing:  # moved between the two: read where it is now
            row = await self._readable(key)
            return await self._place().get(row.object, start=start, end=end)

    async def link_get(self, key: str, *, expires: float | None = None, download: str | None = None) -> Link:
        """Let a client read it past us, until the link ends; what is quarantined or deleted after that is still readable as long."""
        row = await self._readable(key)
        if not row.settled:  # a link to an object that is just being moved would soon lead nowhere
            await settle(row.name, self._program.store.blobs, self._place())
            row = await self._readable(key)
        return self._place().link_get(row.object, expires=self._until(expires), download=download)

    async def list(
        self, prefix: str = "", *, after: str = "", state: str | None = None, limit: int = 100
    ) -> list[Blob]:
        """The tenant's blobs whose keys begin so, by key, after the key `after`."""
        tenant = self._tenant()
        found = await self._program.store.blobs.find(
            prefix=f"{tenant}/{check_prefix(prefix)}",
            after=f"{tenant}/{check_key(after)}" if after else "",
            state=check_state_if_given(state),
            limit=limit,
        )
        return [shown(row) for row in found]

    async def usage(self, prefix: str = "") -> Usage:
        """How many blobs the tenant has, and how many bytes, for a quota."""
        return await self._program.store.blobs.usage(prefix=f"{self._tenant()}/{check_prefix(prefix)}")

    async def _readable(self, key: str) -> BlobRow:
        row = await self._program.store.blobs.get(self._name(key))
        if row is None or row.state in {BlobState.DELETED, BlobState.PURGING}:
            raise BlobMissing(f"There is no blob {key!r}.")
        if row.state is BlobState.QUARANTINED:
            raise BlobQuarantined(f"The blob {key!r} is in quarantine: {row.reason}")
        if row.state is BlobState.MISSING:
            raise BlobMissing(f"The blob {key!r} was lost: {row.reason}.")
        return row
