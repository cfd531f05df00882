"""What a store can do by itself: the same work with the fewest statements, no fence, no history, no library around it."""

from __future__ import annotations

from typing import Any

from bench.limits import postgres, sqlite
from bench.place import url


def measure(measure: str, **options: Any) -> dict[str, Any]:
    store = postgres if url().startswith("postgres") else sqlite
    answer: dict[str, Any] = getattr(store, measure)(**options)
    return answer
