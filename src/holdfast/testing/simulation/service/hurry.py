"""What production code does so often that a simulation would do little else. Only how often is changed, never what is done."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from types import CodeType
from typing import Any
from unittest.mock import patch

from holdfast.jobs import registry, upkeep
from holdfast.jobs.signature import Signature
from holdfast.store.sqlite import wakeups

WAKEUPS_EVERY = 0.4  # seconds between looks at the file; 0.005 in production
UPKEEP_PAUSE = 0.4  # seconds between turns of upkeep; 0.1


@contextmanager
def hurried() -> Generator[None, None, None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(wakeups, "EVERY", WAKEUPS_EVERY))
        # The simulated loop has no files to watch, and to find that out takes the system some milliseconds each time.
        stack.enter_context(patch.object(wakeups, "watch", lambda path, touched: None))  # noqa: ARG005
        stack.enter_context(patch.object(upkeep, "_PAUSE", UPKEEP_PAUSE))
        stack.enter_context(patch.object(registry, "Signature", _signatures()))
        yield


def _signatures() -> Callable[[Any, type], Signature]:
    """Every process declares the same tasks: what their parameters are is found out once in a simulation."""
    known: dict[tuple[CodeType, type], Signature] = {}

    def signature(function: Any, job_type: type) -> Signature:
        key = function.__code__, job_type
        if key not in known:
            known[key] = Signature(function, job_type)
        return known[key]

    return signature
