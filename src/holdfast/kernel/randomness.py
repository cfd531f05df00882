"""Chance, asked of the current World."""

from __future__ import annotations

from holdfast.kernel.world import current


def random() -> float:
    """A number from 0 up to, not including, 1."""
    return current().random()


def random_bytes(count: int) -> bytes:
    return current().random_bytes(count)


def jittered(seconds: float, share: float = 0.2) -> float:
    """The duration, longer or shorter by at most `share`, so that many who wait do not wake together."""
    return seconds * (1 + share * (2 * random() - 1))
