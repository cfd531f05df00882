"""Bring bytes in: staged first, and committed with the program's rows."""

from __future__ import annotations

import hashlib
from contextlib import AsyncExitStack
from typing import Any

from holdfast.blobs.errors import BlobExists, BlobMismatch
from holdfast.blobs.keys import check_key
from holdfast.blobs.port import DEFAULT_TYPE, Content, Reading
from holdfast.blobs.records import Blob, Staged, Upload
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.clock import now
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.names import check_int
from holdfast.runtime.blobs.areas import incoming_name, staged_name
from holdfast.runtime.blobs.base import Base, shown
from holdfast.store.blob_records import NewBlob


@must_await_all("hf.blobs")
class BringsIn(Base):
    async def stage(
        self,
        content: Content,
        *,
        content_type: str = DEFAULT_TYPE,
        length: int | None = None,
        sha256: str | None = None,
        most: int | None = None,
    ) -> Staged:
        """Write the bytes, streamed, where they belong to nothing yet. `commit` makes them a blob; else they are removed after a day."""
        limit = (
            self._its_settings().most
            if most is None
            else min(check_int("most", most, 0, 2**50), self._its_settings().most)
        )
        tenant = self._tenant()
        await self._fits(length or 1)  # said before the bytes come, where it can be; `commit` decides
        name = staged_name(tenant)
        stored = await self._place().put(
            name, content, content_type=content_type, length=length, sha256=sha256, most=limit
        )
        crashpoint("blob.staged")
        return Staged(name, tenant, stored.size, stored.sha256, content_type, now())

    async def commit(self, staged: Staged, key: str | None = None, *, tx: Any = None) -> Blob:
        """Make it a blob, in the transaction `tx` when one is given: the blob is there if and only if that commits.

        Without a key it gets an id for one. What is kept under a key never changes: a key that is taken is BlobExists. Above the tenant's quota
        it is BlobQuotaExceeded.
        """
        name, new = self._name(new_id() if key is None else key), self._committable(staged)
        async with AsyncExitStack() as stack:
            tx = tx if tx is not None else await stack.enter_async_context(self._program.transaction())
            await self._fits(new.size, tx)
            row = await self._program.store.blobs.add(
                NewBlob(name=name, object=new.object, size=new.size, sha256=new.sha256, content_type=new.content_type), tx=tx
            )  # fmt: skip
            if row is None:
                raise BlobExists(
                    f"The key {name.partition('/')[2]!r} is taken, or these bytes are committed already. What is kept under a key never "
                    "changes: take another one. A key of a deleted blob is free when it is purged."
                )
            await self._settle.options(tx=tx).enqueue(name)
        return shown(row)

    async def put(
        self,
        key: str | None,
        content: Content,
        *,
        content_type: str = DEFAULT_TYPE,
        length: int | None = None,
        sha256: str | None = None,
        tx: Any = None,
    ) -> Blob:
        """`stage` and `commit`."""
        if key is not None:
            check_key(key)
        staged = await self.stage(content, content_type=content_type, length=length, sha256=sha256)
        return await self.commit(staged, key, tx=tx)

    async def discard(self, staged: Staged) -> None:
        """Remove staged bytes now. What was committed stays."""
        mine = self._committable(staged)
        if mine.object not in await self._program.store.blobs.known([mine.object]):
            await self._place().delete([mine.object])

    async def link_put(self, *, content_type: str, length: int, expires: float | None = None) -> Upload:
        """Let a client send its bytes past us: so many, of this type, until the link ends. Then `receive` them."""
        settings = self._its_settings()
        await self._fits(check_int("length", length, 0, settings.most))
        upload = new_id()
        name = incoming_name(self._tenant(), upload)
        link = self._place().link_put(
            name, expires=self._until(expires), content_type=content_type, length=length
        )
        return Upload(upload, link, content_type, length)

    async def receive(
        self, upload: str, *, content_type: str | None = None, length: int | None = None
    ) -> Staged:
        """Stage what a client has sent by a link. It is copied first, and hashed then: what is sent again changes nothing."""
        place, tenant = self._place(), self._tenant()
        source, name = incoming_name(tenant, upload), staged_name(tenant)
        await place.copy(source, name)
        reading = await place.get(name)
        stat = reading.stat
        kind = stat.content_type or DEFAULT_TYPE
        if (content_type is not None and kind != content_type) or (
            length is not None and stat.size != length
        ):
            await reading.aclose()
            await place.delete([name])
            raise BlobMismatch(f"{stat.size:,} bytes of {kind} were sent, and {length:,} of {content_type} were to be." if length is not None
                               else f"It was sent as {kind}, and {content_type} was to be.")  # fmt: skip
        found = await _hashed(reading)
        await place.delete([source])
        return Staged(name, tenant, stat.size, found, kind, now())

    def _committable(self, staged: Staged) -> Staged:
        if not isinstance(staged, Staged):
            raise UsageError("What is committed comes from `await hf.blobs.stage(…)` or `receive`.")
        if staged.tenant != self._tenant():
            raise UsageError("These bytes were staged for another tenant.")
        if now() - staged.at > self._its_settings().unused / 2:
            raise UsageError(
                "These bytes were staged too long ago, and may be removed any moment. Stage them again."
            )
        return staged


async def _hashed(reading: Reading) -> str:
    found = hashlib.sha256()
    async for piece in reading:
        found.update(piece)
    return found.hexdigest()
