"""What is kept of a message that could not be understood: how two are told to be the same, and how one is made to fit."""

from __future__ import annotations

import hashlib

from holdfast.kernel.show import storable
from holdfast.store.event_records import RAW_LIMIT


def fingerprint(transport: str, group: str, raw: bytes) -> bytes:
    """Of the whole message, also when not all of it is kept. Each part says how long it is, so none can pass for another."""
    found = hashlib.sha256()
    for part in (transport.encode(), group.encode(), raw):
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.digest()


def fitting(raw: bytes, reason: str) -> tuple[bytes, str]:
    """The message and the reason as a store can keep them."""
    if len(raw) <= RAW_LIMIT:
        return raw, storable(reason)
    cut = f"(Of its {len(raw):,} bytes only the first {RAW_LIMIT:,} are kept.)"
    return raw[:RAW_LIMIT], f"{storable(reason)} {cut}"
