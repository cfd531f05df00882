"""What all verbs of `hf.blobs` share: where the bytes are, whose they are, and the job that moves them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, Unpack

from holdfast.blobs.errors import BlobQuotaExceeded
from holdfast.blobs.keys import NOBODY, check_key, check_tenant
from holdfast.blobs.opening import open_blobs
from holdfast.blobs.port import BlobStore
from holdfast.blobs.records import Blob
from holdfast.blobs.settings import BlobSettings
from holdfast.guards import Guard
from holdfast.guards.guard import Options as GuardOptions
from holdfast.kernel.context import context
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_seconds
from holdfast.runtime.blobs.guarded import GuardedBlobs
from holdfast.store.blob_records import BlobRow
from holdfast.store.ports import Store, Tx


class Program(Protocol):
    """As much of Holdfast as this needs."""

    store: Store

    def task(self, /, **options: Any) -> Callable[[Any], Any]: ...
    def every(self, seconds: float, **options: Any) -> Callable[[Any], Any]: ...
    def guard(self, name: str, /, **options: Unpack[GuardOptions]) -> Guard[Any]: ...
    def transaction(self) -> AbstractAsyncContextManager[Tx]: ...


class Base:
    _program: Program
    settings: BlobSettings | None
    _objects: BlobStore | None = None
    _guard: Guard[Any]
    _settle: Any  # the task

    def _place(self) -> BlobStore:
        if self._objects is None:
            settings = self._its_settings()
            self._objects = GuardedBlobs(open_blobs(settings), self._guard, settings.timeout)
        return self._objects

    def _its_settings(self) -> BlobSettings:
        if self.settings is None:
            raise UsageError(
                "This program keeps no blobs: it was not told where. Set HOLDFAST_BLOBS_URL, such as file:blobs or s3://bucket/prefix; or say "
                "Holdfast(blobs=BlobSettings(url=…))."
            )
        return self.settings

    def _tenant(self) -> str:
        """Whose blobs this is about: the context says it, and nothing that a caller passes along."""
        tenant = context().tenant
        if tenant is None and self._its_settings().tenants:
            raise UsageError(
                "Whose blobs? These settings ask for a tenant: `with within(tenant=…):` around it."
            )
        return check_tenant(tenant)

    def _name(self, key: str) -> str:
        return f"{self._tenant()}/{check_key(key)}"

    async def _fits(self, size: int, tx: Any = None) -> None:
        """Within `tx` it is exact: nobody else commits blobs of this tenant until that ends."""
        quota, tenant = self._its_settings().quota, self._tenant()
        if quota is None:
            return
        used = (await self._program.store.blobs.usage(prefix=f"{tenant}/", tx=tx)).size
        if used + size > quota:
            raise BlobQuotaExceeded(
                f"This tenant has {used:,} of {quota:,} bytes, and {size:,} more are too many. Delete others first."
            )

    def _until(self, expires: float | None) -> float:
        longest = self._its_settings().links
        return longest if expires is None else check_seconds("expires", expires, 1.0, longest)


def shown(row: BlobRow) -> Blob:
    tenant, _, key = row.name.partition("/")
    return Blob(
        key, None if tenant == NOBODY else tenant, str(row.state), row.size, row.sha256, row.content_type, row.reason, row.created_at,
        row.changed_at,
    )  # fmt: skip
