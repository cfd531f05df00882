"""The views of simulated programs: what they hear, what a row is about, and what it is made of. Shared with the checkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


class ViewSpec(msgspec.Struct, frozen=True):
    pattern: str
    key: Callable[[str | None, Any], str | None]  # of the event's key and data

    def hears(self, type_: str) -> bool:
        return type_.startswith(self.pattern.removesuffix("*"))


def _own_key(key: str | None, _: Any) -> str | None:
    return key


def _bucket(_: str | None, data: Any) -> str | None:
    """Rows that are fed by events of several keys."""
    return f"bucket {data['op'] % 2}"


VIEWS = {
    "orders": ViewSpec("order.*", _own_key),
    "totals": ViewSpec("order.*", _bucket),
}


def projected(row: Any, event_id: str) -> dict[str, Any]:
    """All that it has seen, in order: so the smallest mistake shows."""
    return {"seen": [*(row or {"seen": []})["seen"], event_id]}
