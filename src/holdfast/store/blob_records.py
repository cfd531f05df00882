"""What is kept of a blob: its name, where its object is, and what may be done with it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

BATCH_LIMIT = 10_000  # objects of one question
LONGEST = 1_000  # characters of a name or an object
END = "\x7f"  # behind every character that a name may have


class BlobState(StrEnum):
    KEPT = "kept"  # it may be read
    QUARANTINED = "quarantined"  # nobody may read it until a person lets it go
    DELETED = "deleted"  # it can be restored for a while
    PURGING = "purging"  # its object is being removed, and then its row
    MISSING = "missing"  # its object was lost behind our back


class NewBlob(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # tenant/key
    object: str  # where its bytes are
    size: int
    sha256: str
    content_type: str


class BlobRow(msgspec.Struct, frozen=True):
    name: str
    object: str
    state: BlobState
    settled: bool  # whether its object is where a blob of this state belongs, and nowhere else
    size: int
    sha256: str
    content_type: str
    reason: str | None
    created_at: float
    changed_at: float


class Usage(msgspec.Struct, frozen=True):
    """How many blobs, and how many bytes."""

    number: int
    size: int
