"""A fork waits until our threads rest: what one of them is in the middle of would stay so in the child for ever.

What must not be open in two processes is closed before it. And the child is told of what it has inherited and must not use.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import threading
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol

from holdfast.kernel.telemetry import note

_PATIENCE = 10.0  # seconds for each; a child that is forked in spite of one may find things held
_held: list[threading.Lock] = []  # by the fork that is under way
_forking = threading.Lock()  # two threads that fork at once would each wait for what the other holds


class Turn:
    """One thread's: held while it works. A fork takes all of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        _turns.add(self)


_turns: weakref.WeakSet[Turn] = weakref.WeakSet()


class Closable(Protocol):
    """What must not be open while the process is forked."""

    def rest(self) -> None:
        """Called before a fork, while the threads rest. It is opened again when it is needed."""


_closable: weakref.WeakSet[Closable] = weakref.WeakSet()


def close_before(thing: Closable) -> None:
    """Call its `rest` before every fork from now on, for as long as it lives."""
    _closable.add(thing)


class Heir(Protocol):
    """What a child has of its parent's, and must not use as it is."""

    def forked(self) -> None:
        """Called in the child, before anything else of the program runs there."""


_heirs: weakref.WeakKeyDictionary[Heir, None] = weakref.WeakKeyDictionary()


def tell_child(heir: Heir) -> None:
    """Call its `forked` in every child that is forked from now on, for as long as it lives; who is last here is called last."""
    _heirs.pop(heir, None)
    _heirs[heir] = None


_locks: weakref.WeakSet[threading.Lock] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """A lock that nobody holds in a child, whichever thread of the parent held it: that thread does not exist there."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def disown(*connections: Any) -> None:
    """Take the sockets of these asyncio transports or writers away from this child.

    Whatever may be done to them here, such as the good-bye of a driver when they are collected, does not reach the parent's
    connection; and the other side notices when the parent dies, since nobody else has the connection.
    """
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for connection in connections:
            with suppress(Exception):  # closed, or of a kind that has no socket
                if (number := connection.get_extra_info("socket").fileno()) >= 0:
                    os.dup2(nowhere, number, inheritable=False)
    finally:
        os.close(nowhere)


def keep(things: Iterable[object]) -> None:
    """Never collect these, not even at the end of the process: they are the parent's, and their end would reach it."""
    for thing in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def keep_loop(loop: asyncio.AbstractEventLoop) -> None:
    """The same for a loop of the parent and what runs on it: to close it here would take from the parent's loop what it waits on."""
    keep([loop, *asyncio.all_tasks(loop)])


def _before() -> None:
    locks = (_forking, *(turn.lock for turn in tuple(_turns)))
    _held.extend(lock for lock in locks if lock.acquire(timeout=_PATIENCE))
    for thing in tuple(_closable):
        thing.rest()


def _after() -> None:
    while _held:
        _held.pop().release()


def _after_in_child() -> None:
    _after()
    for lock in tuple(_locks):
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001  as the standard library does
    for heir in tuple(_heirs):
        try:
            heir.forked()
        except Exception as error:  # noqa: BLE001  the others must hear of it all the same
            note("fork.child_not_told", heir=type(heir).__name__, error=repr(error))


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
