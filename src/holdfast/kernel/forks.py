"""A fork waits until our threads rest: what one of them is in the middle of would stay so in the child for ever.

And the child is told of what it has inherited and must not use.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

_PATIENCE = 10.0  # seconds for each; a child that is forked in spite of one may find things held
_held: list[Turn] = []  # by the fork that is under way


class Turn:
    """One thread's: held while it works. A fork takes all of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        _turns.add(self)


_turns: weakref.WeakSet[Turn] = weakref.WeakSet()


class Heir(Protocol):
    """What a child has of its parent's, and must not use as it is."""

    def forked(self) -> None:
        """Called in the child, before anything else of the program runs there."""


_heirs: weakref.WeakSet[Heir] = weakref.WeakSet()


def tell_child(heir: Heir) -> None:
    """Call its `forked` in every child that is forked from now on, for as long as it lives."""
    _heirs.add(heir)


def _before() -> None:
    _held.extend(turn for turn in tuple(_turns) if turn.lock.acquire(timeout=_PATIENCE))


def _after() -> None:
    while _held:
        _held.pop().lock.release()


def _after_in_child() -> None:
    _after()
    for heir in tuple(_heirs):
        heir.forked()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
