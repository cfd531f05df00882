"""Lines for people, on stderr. Whoever should read them may be gone or asleep, and that must harm nobody who speaks."""

from __future__ import annotations

import io
import os
import queue
import select
import sys
import threading
from contextlib import suppress
from typing import TextIO

_MOST = 1_000  # lines that wait for a reader; what comes then is lost, and counted
_A_WHILE = 0.5  # seconds

_voice: _Voice | None = None


def say(text: str) -> None:
    """Write a line. It never raises and never waits: a pipe that nobody empties would hold up the event loop."""
    with suppress(Exception):  # there is no stderr, it is closed, or no thread can be had
        _say(sys.stderr, text)


def _say(stream: TextIO, text: str) -> None:
    try:
        fd = stream.fileno()
    except io.UnsupportedOperation:  # something in memory
        stream.write(f"{text}\n")
    else:
        _of_this_process().put(fd, text.encode(stream.encoding or "utf-8", "backslashreplace") + b"\n")


def lost(number: int) -> str:
    return f"holdfast: {number} lines are lost: nobody read them"


tell_lost = lost  # who formats lines puts another in its place


def hear_out(seconds: float = _A_WHILE) -> None:
    """Wait until all that was said is written, but no longer than this: the last words of a process."""
    if _voice is not None and _voice.pid == os.getpid():
        _voice.wait(seconds)


def _of_this_process() -> _Voice:
    global _voice  # noqa: PLW0603  one for each process, made when there is something to say
    if _voice is None or _voice.pid != os.getpid():  # a fork has no such thread
        _voice = _Voice()
    return _voice


class _Voice:
    """A thread that may be held up. It writes to the descriptor: the locks of `sys.stderr` are for those who must go on."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._lost = 0
        self._inbox: queue.SimpleQueue[tuple[int, bytes] | threading.Event] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="holdfast-voice", daemon=True).start()

    def put(self, fd: int, line: bytes) -> None:
        if self._inbox.qsize() >= _MOST:
            self._lost += 1
            return
        if self._lost:
            lost, self._lost = self._lost, 0
            self._inbox.put((fd, tell_lost(lost).encode("utf-8", "backslashreplace") + b"\n"))
        self._inbox.put((fd, line))

    def wait(self, seconds: float) -> None:
        done = threading.Event()
        self._inbox.put(done)
        done.wait(seconds)

    def _run(self) -> None:
        while True:
            match self._inbox.get():
                case threading.Event() as done:
                    done.set()
                case (fd, line):
                    _write(fd, line)


def _write(fd: int, line: bytes) -> None:
    while line:
        try:
            line = line[os.write(fd, line) :]
        except BlockingIOError:  # someone else has made it so, for all who share it
            wait = select.poll()
            wait.register(fd, select.POLLOUT)
            wait.poll(1000 * _A_WHILE)
        except OSError:  # whoever read it is gone
            return
