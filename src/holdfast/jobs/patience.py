"""Asking a store again that is in trouble: what was done must not be lost for that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.kernel.clock import recover
from holdfast.kernel.errors import TROUBLE
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note

T = TypeVar("T")
PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between tries


async def patiently(call: Callable[[], Awaitable[T]], *, what: str, job: str) -> T:
    """The answer of a call that may be repeated; the error of the last try, when none succeeds."""
    for pause in PAUSES:
        try:
            return await call()
        except TROUBLE as trouble:
            note(what, job=job, error=repr(trouble))
            await recover(jittered(pause))
    return await call()
