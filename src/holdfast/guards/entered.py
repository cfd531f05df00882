"""Which blocks this task or thread is in: `with breaker:` on a breaker that many share keeps its permit here."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypeAlias

from holdfast.kernel.errors import UsageError

Blocks: TypeAlias = (
    "tuple[object, Any, Blocks] | None"  # the innermost: its owner, what it keeps, and the blocks around
)

_blocks: ContextVar[Blocks] = ContextVar("holdfast_guard_blocks", default=None)


def push(owner: object, kept: Any) -> None:
    """A block of this owner begins."""
    _blocks.set((owner, kept, _blocks.get()))


def pop(owner: object) -> Any:
    """The innermost block of this owner ends; what was kept for it."""
    passed: list[tuple[object, Any]] = []
    blocks = _blocks.get()
    while blocks is not None:
        holder, kept, blocks = blocks
        if holder is owner:
            for each in reversed(passed):  # blocks that overlap instead of nesting
                blocks = (*each, blocks)
            _blocks.set(blocks)
            return kept
        passed.append((holder, kept))
    raise UsageError(
        "This block is left in another task or thread than it was entered in. Enter and leave it in one."
    )
