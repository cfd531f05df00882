"""A fork waits until our threads rest: what one of them is in the middle of would stay so in the child for ever."""

from __future__ import annotations

import os
import threading
import weakref

_PATIENCE = 10.0  # seconds for each; a child that is forked in spite of one may find things held
_held: list[Turn] = []  # by the fork that is under way


class Turn:
    """One thread's: held while it works. A fork takes all of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        _turns.add(self)


_turns: weakref.WeakSet[Turn] = weakref.WeakSet()


def _before() -> None:
    _held.extend(turn for turn in tuple(_turns) if turn.lock.acquire(timeout=_PATIENCE))


def _after() -> None:
    while _held:
        _held.pop().lock.release()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
