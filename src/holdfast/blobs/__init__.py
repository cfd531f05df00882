"""Blobs: files of any size, in a folder or in an S3, by explicit URL. `hf.blobs` keeps their rows in the database."""

from holdfast.blobs.errors import (
    BlobError,
    BlobExists,
    BlobKeyError,
    BlobMismatch,
    BlobMissing,
    BlobQuarantined,
    BlobQuotaExceeded,
    BlobRefused,
    BlobTooLarge,
    BlobUnavailable,
    LinkRefused,
)
from holdfast.blobs.keys import check_key
from holdfast.blobs.opening import open_blobs
from holdfast.blobs.port import BlobStore, Link, Reading, Stat, Stored
from holdfast.blobs.records import Blob, Checked, Staged, Swept, Upload
from holdfast.blobs.settings import BlobSettings

__all__ = [
    "Blob",
    "BlobError",
    "BlobExists",
    "BlobKeyError",
    "BlobMismatch",
    "BlobMissing",
    "BlobQuarantined",
    "BlobQuotaExceeded",
    "BlobRefused",
    "BlobSettings",
    "BlobStore",
    "BlobTooLarge",
    "BlobUnavailable",
    "Checked",
    "Link",
    "LinkRefused",
    "Reading",
    "Staged",
    "Stat",
    "Stored",
    "Swept",
    "Upload",
    "check_key",
    "open_blobs",
]
