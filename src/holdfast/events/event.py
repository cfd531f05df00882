"""An event as a handler sees it: a fact, with its story."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec

D = TypeVar("D")


class Event(msgspec.Struct, Generic[D], frozen=True, kw_only=True):
    """A fact that was emitted once. Every delivery of it has the same id and the same data."""

    id: str
    type: str
    data: D
    key: str | None = None
    version: int | None = None  # of its key: 1, 2, 3 … in the order of the commits
    time: datetime  # when it was emitted, by the database's clock, in UTC; when it arrived, if its maker does not say
    source: str = "holdfast"
    correlation_id: str | None = None
    causation_id: str | None = None
    trace: str | None = None


AnyEvent = Event[Any]
