"""Numbers of one process in a mapped file: others read them meanwhile, and they outlive the process, however it ends.

A file has, in this order: a head, the names (a line of JSON each), the numbers (doubles, in the order of the names), and the
blocks of the journal. A number is written in one move of 8 bytes, so nobody reads half of one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
from contextlib import suppress
from pathlib import Path

from holdfast.kernel.loops import new_lock

MOST = 16_384  # numbers of one process
_MAGIC = b"holdfast-cells-1"
_HEAD, _NAMES = 4096, 2 * 1024 * 1024  # bytes
_NUMBERS = _HEAD + _NAMES
BLOCKS, BLOCK = 128, 64 * 1024
_JOURNAL = _NUMBERS + 8 * MOST
SIZE = _JOURNAL + BLOCKS * BLOCK  # nearly all of it is never touched, and takes no room
_COUNT = 2  # the place of the number of names, in words of 8 bytes
_LONGEST = 400  # characters of one label
_MORE_NAMES, _MORE_NUMBERS = 64 * 1024, 16 * 1024  # bytes for which room is taken at once
FULL = (errno.ENOSPC, errno.EDQUOT)
LOST = 0  # the number that takes what has no room
_NAME_OF_LOST = '["c","holdfast_metrics_lost_total"]'

Key = tuple[str, ...]  # what kind it is, the name of the metric, and its labels


class Cells:
    """Of this process: it has the file, locked for as long as it lives. Without a path they are in memory alone."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._fd = -1 if path is None else _made(path)
        self._map = mmap.mmap(self._fd, SIZE)
        self._view = memoryview(self._map)
        self.words = self._view.cast("Q")
        self.numbers = self._view[_NUMBERS:_JOURNAL].cast("d")
        self._places: dict[str, int] = {}
        self._end, self.lock = _HEAD, new_lock()
        self._names = _Room(self._fd, 0, _NUMBERS, _MORE_NAMES)
        self._doubles = _Room(self._fd, _NUMBERS, _JOURNAL, _MORE_NUMBERS)
        self._blocks: set[int] = set()  # those that have room
        if self._append(_NAME_OF_LOST) is None and path is not None:
            path.unlink()
            self.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        self._map[: len(_MAGIC)] = _MAGIC

    def place(self, key: Key) -> int:
        """Where the number of this name is: made when nobody has asked for it before."""
        return self.place_of(json.dumps([part[:_LONGEST] for part in key], separators=(",", ":")))

    def place_of(self, name: str) -> int:
        with self.lock:
            found = self._places.get(name)
            if found is None:
                found = self._append(name)
            return LOST if found is None else found

    def add(self, place: int, number: float) -> None:
        with self.lock:
            self.numbers[place] += number

    def set(self, place: int, number: float) -> None:
        if place != LOST:
            self.numbers[place] = number

    def has_room_for(self, block: int) -> bool:
        """Asked before a block of the journal is written for the first time."""
        if block not in self._blocks:
            start = _JOURNAL + block * BLOCK
            if not _Room(self._fd, start, start + BLOCK, BLOCK).reaches(start + BLOCK):
                return False
            self._blocks.add(block)
        return True

    def block(self, number: int) -> memoryview:
        return self._view[_JOURNAL + number * BLOCK : _JOURNAL + (number + 1) * BLOCK]

    def read(self) -> dict[str, float]:
        return _read(self._map)

    def close(self) -> None:
        """Nothing is lost: whoever reads the folder finds that nobody has the file any more."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            fcntl.flock(fd, fcntl.LOCK_UN)  # the map has another descriptor of the same opening
            os.close(fd)

    def _append(self, name: str) -> int | None:
        """None: there is no room for it."""
        place, line = len(self._places), name.encode() + b"\n"
        number = _NUMBERS + 8 * (place + 1)
        if not (self._names.reaches(self._end + len(line)) and self._doubles.reaches(number)):
            return None
        self._map[self._end : self._end + len(line)] = line
        self._end += len(line)
        self._places[name] = place
        self.words[_COUNT] = place + 1  # after the name: a reader sees whole ones
        return place


class _Room:
    """A part of the file, taken from the disk piece by piece before it is written: a page that a full disk has no room for kills who writes it."""

    def __init__(self, fd: int, start: int, end: int, step: int) -> None:
        self._fd, self._taken, self._end, self._step = fd, start, end, step

    def reaches(self, where: int) -> bool:
        if where > self._end:
            return False
        while self._taken < where:
            size = min(self._step, self._end - self._taken)
            if self._fd >= 0 and not _took(self._fd, self._taken, size):
                return False
            self._taken += size
        return True


class Left(Cells):
    """What a process that is gone has left. It is ours now, until `close`."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path, self._fd = path, fd
        self._map = mmap.mmap(fd, SIZE)
        self._view = memoryview(self._map)
        self.words = self._view.cast("Q")
        self.numbers = self._view[_NUMBERS:_JOURNAL].cast("d")
        self.lock = new_lock()


def adopt(path: Path) -> Left | None:
    """The numbers of a process that is gone; None: it lives, or somebody else has adopted them."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_size == SIZE:
            return Left(path, fd)
    except OSError:
        pass
    os.close(fd)
    return None


def look(path: Path) -> dict[str, float]:
    """The numbers of a process that may live."""
    with (
        suppress(OSError, ValueError),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ) as mapped,
    ):
        return _read(mapped)
    return {}


def key_of(name: str) -> Key:
    return tuple(json.loads(name))


def _made(path: Path) -> int:
    """It gets its name when it is whole and locked: nobody takes it for one that is left."""
    draft = path.with_suffix(".new")
    fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.ftruncate(fd, SIZE)
    draft.rename(path)
    return fd


def _took(fd: int, start: int, size: int) -> bool:
    try:
        os.posix_fallocate(fd, start, size)
    except OSError as error:
        return error.errno not in FULL  # a file system that does not know this is trusted
    return True


def _read(mapped: mmap.mmap) -> dict[str, float]:
    words = memoryview(mapped).cast("Q")
    try:
        count = min(words[_COUNT], MOST)
        numbers = list(words[_NUMBERS // 8 : _NUMBERS // 8 + count].cast("B").cast("d"))
    finally:
        words.release()
    names: list[str] = []
    at = _HEAD
    for _ in range(count):
        end = mapped.find(b"\n", at, _NUMBERS)
        names.append(mapped[at:end].decode())
        at = end + 1
    return dict(zip(names, numbers, strict=True))
