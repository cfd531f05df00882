"""Timings of production code that would fill a simulation with idle looks. Only how often is changed, never what is done."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from holdfast.jobs import upkeep
from holdfast.store.sqlite import wakeups

WAKEUPS_EVERY = 0.4  # seconds between looks at the file; 0.005 in production
UPKEEP_PAUSE = 0.4  # seconds between turns of upkeep; 0.1


@contextmanager
def hurried() -> Generator[None, None, None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(wakeups, "EVERY", WAKEUPS_EVERY))
        stack.enter_context(patch.object(upkeep, "_PAUSE", UPKEEP_PAUSE))
        yield
