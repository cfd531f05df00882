"""The place for blobs that settings name."""

from __future__ import annotations

from holdfast.blobs.folder import FolderStore
from holdfast.blobs.port import BlobStore
from holdfast.blobs.s3 import S3Store
from holdfast.blobs.settings import BlobSettings, Folder, place


def open_blobs(settings: BlobSettings) -> BlobStore:
    """Nothing is connected or made yet."""
    where = place(settings)
    return FolderStore(where.path, public=settings.public) if isinstance(where, Folder) else S3Store(where)
