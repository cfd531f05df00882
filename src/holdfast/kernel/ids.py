"""Ids minted by whoever creates a thing, sorted by time: UUID version 7."""

from __future__ import annotations

from holdfast.kernel.world import current


def new_id() -> str:
    """A new UUIDv7 in its usual 36 characters: 48 bits of milliseconds, then 74 bits of chance."""
    world = current()
    stamp = int(world.now() * 1000) & 0xFFFF_FFFF_FFFF
    chance = int.from_bytes(world.random_bytes(10), "big")
    high = 0x7000 | (chance >> 68) & 0x0FFF
    low = 0x8000_0000_0000_0000 | chance & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{stamp:012x}{high:04x}{low:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
