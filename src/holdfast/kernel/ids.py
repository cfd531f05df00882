"""Ids minted by whoever creates a thing, sorted by time: UUID version 7."""

from __future__ import annotations

from holdfast.kernel.world import current


def new_id() -> str:
    """A new UUIDv7 in its usual 36 characters: 48 bits of milliseconds, then 74 bits of chance."""
    world = current()
    return _written(int(world.now() * 1000), int.from_bytes(world.random_bytes(10), "big"))


def new_ids(count: int) -> list[str]:
    """Many at once, sorted in this order: one draw of chance for all of them, and a step of chance between them."""
    world = current()
    stamp, drawn = int(world.now() * 1000), int.from_bytes(world.random_bytes(14), "big")
    step = (drawn & 0xFFFF_FFFF) | 1
    first = (drawn >> 93 & 0x0FFF) << 68 | drawn >> 32 & (1 << 61) - 1  # with room above it: no id runs over
    head = _written(stamp, first)[:19]  # only what comes after it changes
    low = 0x8000_0000_0000_0000 | first & 0x3FFF_FFFF_FFFF_FFFF
    tails = [f"{low + number * step:016x}" for number in range(count)]
    return [f"{head}{tail[:4]}-{tail[4:]}" for tail in tails]


def _written(milliseconds: int, chance: int) -> str:
    stamp = milliseconds & 0xFFFF_FFFF_FFFF
    high = 0x7000 | (chance >> 68) & 0x0FFF
    low = 0x8000_0000_0000_0000 | chance & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{stamp:012x}{high:04x}{low:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
