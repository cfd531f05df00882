"""Wait for a fact, and hear what is noted."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager

from holdfast.kernel.telemetry import subscribe


async def until(check, seconds=10.0):
    """Wait for a fact."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.01)


@contextmanager
def heard(name):
    """The notes of this name, while the block lasts."""
    notes = []
    end = subscribe(lambda told, fields: notes.append(dict(fields)) if told == name else None)
    try:
        yield notes
    finally:
        end()
