"""Data worth looking at: programmes, people, and applications in all states."""

from __future__ import annotations


async def seed() -> str:
    """Planted once: what is there already is left alone."""
    return "Nothing is planted yet."
