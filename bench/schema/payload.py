"""Arguments of about 100 bytes and time-ordered ids, the same for every design."""

from __future__ import annotations

import json
import os
import time
from uuid import UUID


def arguments(seq: int) -> str:
    return json.dumps({"seq": seq, "t": 1763179200000000000, "s": 0.0, "pad": "x" * 40})


def uuid7() -> UUID:
    """A UUIDv7: milliseconds first, so that an index on it grows at its end."""
    random = int.from_bytes(os.urandom(10), "big")
    value = (time.time_ns() // 1_000_000) << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)
