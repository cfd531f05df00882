"""Wake other processes of this machine by touching a file that they watch: by inotify, where the system has it.

Whoever watches must look now and then all the same: a touch may be missed, and some systems tell nobody.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable
from contextlib import suppress

_ATTRIBUTES = 0x4  # IN_ATTRIB: its times were set
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC  # IN_NONBLOCK and IN_CLOEXEC are the same numbers
_ROOM = 4096  # bytes that are read at a time; an event has 16


def touch(path: str) -> None:
    """Set its times to now. What is in it stays as it is."""
    with suppress(OSError):
        os.utime(path)


def watch(path: str, touched: Callable[[], None]) -> Callable[[], None] | None:
    """Have `touched` called on this loop after each touch; returns how to end it. None: nobody will tell."""
    descriptor = _watching(path)
    if descriptor is None:
        return None
    loop = asyncio.get_running_loop()

    def read() -> None:
        with suppress(OSError):
            os.read(descriptor, _ROOM)
        touched()

    def end() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)

    try:
        loop.add_reader(descriptor, read)
    except NotImplementedError:  # a simulated loop, or one of a system without it
        os.close(descriptor)
        return None
    return end


def _watching(path: str) -> int | None:
    try:
        system = ctypes.CDLL(None)
        descriptor: int = system.inotify_init1(_FLAGS)
    except (OSError, AttributeError):  # not Linux
        return None
    if descriptor < 0:
        return None  # the user has too many
    if system.inotify_add_watch(descriptor, os.fsencode(path), _ATTRIBUTES) < 0:
        os.close(descriptor)
        return None
    return descriptor
