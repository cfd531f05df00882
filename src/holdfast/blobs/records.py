"""What programs hold: bytes that are staged, a blob, and an upload that a client was allowed."""

from __future__ import annotations

import msgspec

from holdfast.blobs.port import Link


class Staged(msgspec.Struct, frozen=True):
    """Bytes that are on the disk and belong to nothing yet. They are removed when nobody commits them."""

    object: str
    tenant: str
    size: int
    sha256: str
    content_type: str
    at: float  # seconds since 1970


class Blob(msgspec.Struct, frozen=True):
    """A file: what is kept under its key never changes. `state` is kept, quarantined, deleted, purging or missing."""

    key: str
    tenant: str | None
    state: str
    size: int
    sha256: str
    content_type: str
    reason: str | None  # why it is not just kept
    created_at: float
    changed_at: float


class Upload(msgspec.Struct, frozen=True):
    """A client may send its bytes by `link`; then give `id` to `hf.blobs.receive`."""

    id: str
    link: Link
    content_type: str
    length: int


class Swept(msgspec.Struct, frozen=True):
    """What a sweep has removed or mended."""

    unused: int = 0  # objects that were staged or sent in, and never committed
    remains: int = 0  # of writers that were killed
    settled: int = 0  # blobs whose job was lost
    purged: int = 0  # deleted blobs that are gone for good now


class Checked(msgspec.Struct, frozen=True):
    """What does not fit together."""

    rows: int
    objects: int
    missing: tuple[Blob, ...]  # their objects are gone
    orphans: tuple[str, ...]  # objects that belong to no row
    orphans_size: int
