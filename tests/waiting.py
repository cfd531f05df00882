"""Wait for a fact, and hear what is noted."""

from __future__ import annotations

from contextlib import contextmanager

from holdfast.kernel.telemetry import subscribe
from tools.waiting import until

__all__ = ["heard", "until"]


@contextmanager
def heard(name):
    """The notes of this name, while the block lasts."""
    notes = []
    end = subscribe(lambda told, fields: notes.append(dict(fields)) if told == name else None)
    try:
        yield notes
    finally:
        end()
