"""Wait for a fact, never for seconds: for tests, and for the harness that injects faults."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any


async def until(check: Callable[[], Any], seconds: float = 10.0) -> Any:
    """What `check` answers, as soon as that is true."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.01)
