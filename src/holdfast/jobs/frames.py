"""What a worker and a task's own process say to each other: one JSON line each way."""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.kernel.context import Context


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Which task to run, and with what."""

    path: list[str]  # where modules are imported from
    module: str
    task: str  # the name by which it is declared
    args: str  # as they are stored
    context: Context  # the story that the job belongs to


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: a result as JSON text, or words about why there is none."""

    kind: Literal["done", "failed", "never", "retry", "snooze", "cancel", "reject"]
    result: str | None = None
    text: str = ""
    after: float = 0.0
