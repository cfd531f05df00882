"""What is kept of a message that could not be understood: how two are told to be the same, and how one is made to fit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from holdfast.kernel.show import storable
from holdfast.store.event_records import RAW_LIMIT, NewStray


def fingerprint(transport: str, group: str, raw: bytes) -> bytes:
    """Of the whole message, also when not all of it is kept. Each part says how long it is, so none can pass for another."""
    found = hashlib.sha256()
    for part in (transport.encode(), group.encode(), raw):
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.digest()


def fitting(message: NewStray) -> NewStray:
    """The message and the reason as a store can keep them."""
    raw, reason = message.raw, storable(message.reason)
    if len(raw) <= RAW_LIMIT:
        return NewStray(raw, reason, message.type)
    cut = f"(Of its {len(raw):,} bytes only the first {RAW_LIMIT:,} are kept.)"
    return NewStray(raw[:RAW_LIMIT], f"{reason} {cut}", message.type)


def by_fingerprint(transport: str, group: str, messages: Sequence[NewStray]) -> dict[bytes, NewStray]:
    """What is to be kept of them; the same one once, in the order in which they came."""
    found: dict[bytes, NewStray] = {}
    for each in messages:
        found.setdefault(fingerprint(transport, group, each.raw), fitting(each))
    return found
