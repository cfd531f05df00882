"""Which task is inside a transaction of its own: what it writes without `tx=` would not be part of that."""

from __future__ import annotations

from typing import Protocol

from holdfast.kernel.errands import whoever
from holdfast.kernel.errors import UsageError

_INSIDE = (
    "This is inside a transaction of the same task (`hf.transaction() as tx`, or a SQLAlchemy session on SQLite that has written), "
    "and would not be part of it. Pass tx=tx when it takes that (with a session, tx=session), else do it after the block. In place of a transaction in a "
    "transaction there is `async with tx.savepoint():`."
)


class Block(Protocol):
    """A transaction whose block was entered and not left."""

    @property
    def is_open(self) -> bool:
        """False once it was cut off: what comes then is in nobody's way."""


class Blocks:
    """By the task that has entered them; in sync code by the thread."""

    def __init__(self) -> None:
        self._open: dict[object, Block] = {}

    def enter(self, block: Block) -> object:
        """Returns the owner, to be named at the end: a block may be left in another task."""
        owner = whoever()
        self._open[owner] = block
        return owner

    def leave(self, owner: object) -> None:
        self._open.pop(owner, None)

    def mine(self) -> Block | None:
        """The open transaction of whoever asks."""
        block = self._open.get(whoever()) if self._open else None
        return block if block is not None and block.is_open else None

    def check_free(self) -> None:
        """Raise when whoever asks is inside a transaction of its own."""
        if self.mine() is not None:
            raise inside()


def inside() -> UsageError:
    return UsageError(_INSIDE)
