"""Cut what is handled together by number and by bytes: many that are large do not fill the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

PORTION = 8 * 1024 * 1024  # bytes that are handled together, unless a single one has more


def portions(
    items: Iterable[T], size: Callable[[T], int], *, most: int, room: int = PORTION
) -> Iterator[list[T]]:
    """In order, each of at most so many items and bytes; one that is larger comes alone. Of `items` one more is taken than is given."""
    part: list[T] = []
    taken = 0
    for item in items:
        own = size(item)
        if part and (len(part) == most or taken + own > room):
            yield part
            part, taken = [], 0
        part.append(item)
        taken += own
    if part:
        yield part
