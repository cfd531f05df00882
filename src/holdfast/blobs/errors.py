"""What can go wrong with a blob: it is not there, it is not what was said, or the place that keeps it does not answer."""

from __future__ import annotations

from holdfast.kernel.errors import HoldfastError, UsageError


class BlobError(HoldfastError):
    """The root of them."""


class BlobMissing(BlobError):
    """There is no such blob."""


class BlobExists(BlobError):
    """The key is taken: what is kept under a key never changes."""


class BlobQuarantined(BlobError):
    """The blob is kept, and nobody may read it until a person lets it go."""


class BlobMismatch(BlobError, ValueError):
    """The bytes that came are not those that were announced: their number, their hash or their type. Nothing is kept of them."""


class BlobTooLarge(BlobMismatch):
    """There are more bytes than are taken. Nothing is kept of them."""


class BlobQuotaExceeded(BlobError):
    """The tenant would have more bytes than its quota."""


class BlobUnavailable(BlobError):
    """The place that keeps blobs does not answer, or is full: the same may be asked for again."""


class BlobRefused(BlobError):
    """The place that keeps blobs has refused it for good: keys, rights or names are wrong."""


class BlobKeyError(UsageError):
    """A key or a tenant that is not taken."""


class LinkRefused(BlobError):
    """A signed link that is expired, or was made for something else."""
