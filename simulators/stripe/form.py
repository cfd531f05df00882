"""Stripe's bodies: `metadata[order]=7&expand[0]=charge` as nested objects and lists."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

_PARTS = re.compile(r"\[([^\[\]]*)\]")


def decoded(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        head, _, rest = name.partition("[")
        _put(found, [head, *_PARTS.findall(f"[{rest}" if rest else "")], value)
    return {name: _lists(value) for name, value in found.items()}


def _put(into: dict[str, Any], path: list[str], value: str) -> None:
    for part in path[:-1]:
        into = into.setdefault(part, {})
        if not isinstance(into, dict):
            return  # one name as a value and as an object: the value stands
    into[path[-1] or str(len(into))] = value


def _lists(value: Any) -> Any:
    """An object whose names are numbers is a list."""
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() for name in value):
        return [_lists(value[name]) for name in sorted(value, key=int)]
    return {name: _lists(each) for name, each in value.items()}
