"""What a process says of the work it does: probes show it."""

from __future__ import annotations

import msgspec


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Of the workers of a process, or of all processes of a supervisor."""

    running: bool  # it takes jobs
    jobs: int = 0  # that run now
    processes: int = 1
    trouble: str | None = None  # what is wrong, for a person
    stalled: str | None = None  # a process whose event loop stands still
