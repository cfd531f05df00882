"""Processes: children are started, waited for and ended here; and how this one ends."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.kernel.clock import patience, recover
from holdfast.kernel.spawn import end, spawn
from holdfast.kernel.voice import hear_out

_PR_SET_PDEATHSIG = 1
_LONGEST_LINE = 16 * 2**20  # bytes of an answer
_LAST_WORDS = 0.1  # seconds
_LEAVING = 5.0  # seconds between a child's answer and its end
_NEXT_GUARD = 0.05  # seconds: or who kills each of them would keep us busy
# The pipe tells at once, but whoever we have forked holds it too; so it also looks every second.
_GUARD = """
import os, select, sys
group, parent = map(int, sys.argv[1:])
while os.getppid() == parent and not select.select([0], [], [], 1.0)[0]:
    pass
os.killpg(group, 9)
"""


class Child:
    """A process that we started. It has a session of its own, so that a terminal's Ctrl-C reaches only us."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ended(self) -> int:
        """Its exit code; negative: the signal that ended it."""
        return await self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


async def start_child(
    command: Sequence[str], environment: Mapping[str, str] | None = None, log: Path | None = None
) -> Child:
    """Start a program with this addition to our environment; it writes where we do, or to the end of `log`."""
    env = {**os.environ, **(environment or {})}
    if log is None:
        return Child(await asyncio.create_subprocess_exec(*command, env=env, start_new_session=True))
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            *command, env=env, start_new_session=True, stdout=file, stderr=file
        )
    return Child(process)


Say = Callable[[bytes], None]


async def talk_to_child(
    command: Sequence[str], said: bytes, hear: Callable[[bytes, Say], bool] | None = None
) -> tuple[int, bytes]:
    """Start a program, say one thing, and hear one line: its exit code, and what it wrote.

    With `hear` they go on talking: it is called with each line and a way to say something, until it says that a line is the last.
    At the end, when this is cancelled, and when this process ends, however that happens, it is killed with all that it has
    started. Only what has left its process group goes on.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=_LONGEST_LINE,
    )
    guard = _Guard(process.pid)
    try:
        await guard.start()  # before it knows what to do, and so has started nobody
        line = await _ask(process, said, hear)
        with suppress(TimeoutError):
            async with patience(_LEAVING):
                await process.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):  # macOS: all of the group have ended
            os.killpg(process.pid, signal.SIGKILL)
        await guard.end()
        await process.wait()
    assert process.returncode is not None
    return process.returncode, line


class _Guard:
    """Kills a group when we are gone: a system tells a process of its parent's death at most, not a group.

    It may be killed itself, as whoever is short of memory does: then another takes its place.
    """

    def __init__(self, group: int) -> None:
        self._group = group
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._process = await self._started()
        self._keeper = spawn(self._keep(self._process), name=f"guard:{self._group}")

    async def end(self) -> None:
        if self._keeper is not None:
            await end(self._keeper)
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _keep(self, process: asyncio.subprocess.Process) -> None:
        while True:
            await process.wait()
            with suppress(OSError):  # no memory, no descriptors: there may be some later
                process = self._process = await self._started()
            await recover(_NEXT_GUARD)

    async def _started(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _GUARD, str(self._group), str(os.getpid())),
            stdin=asyncio.subprocess.PIPE,  # it ends with us
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )


async def _ask(
    process: asyncio.subprocess.Process, said: bytes, hear: Callable[[bytes, Say], bool] | None
) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(said)
    with suppress(BrokenPipeError, ConnectionResetError):  # it ended before it listened
        await process.stdin.drain()
    if hear is None:
        process.stdin.close()
        return await process.stdout.readline()
    while (line := await process.stdout.readline()).endswith(b"\n") and not hear(line, process.stdin.write):
        pass
    process.stdin.close()
    return line


class Line:
    """For the child: what its parent says, and what it says to that. What it prints goes where errors go, and it reads nothing.

    Processes that this one forks do not have it: whoever reads must see its end when this one ends.
    """

    def __init__(self) -> None:
        self._in, self._out, here = os.dup(0), os.dup(1), os.getpid()
        self._turn = threading.Lock()
        os.dup2(2, 1)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        self._lines = os.fdopen(self._in, "rb", closefd=False)

        def close_in_child() -> None:
            if os.getppid() == here:  # in its own forks that number may be another's
                os.close(self._in)
                os.close(self._out)

        os.register_at_fork(after_in_child=close_in_child)

    def read(self) -> bytes:
        """The next line; empty: there are no more."""
        return self._lines.readline()

    def say(self, said: bytes) -> None:
        """From any thread."""
        with self._turn, open(self._out, "wb", closefd=False) as pipe:
            pipe.write(said + b"\n")

    def hear(self, heard: Callable[[bytes], None]) -> None:
        """Call this with each line from now on, on a thread of its own."""

        def listen() -> None:
            while line := self.read():
                heard(line)

        threading.Thread(target=listen, name="holdfast-line", daemon=True).start()


def die_with_parent(parent: int, by: signal.Signals = signal.SIGTERM) -> None:
    """On Linux: send this process a signal when the one that started it ends, however that happens.

    SIGTERM lets it end in order. A program that we do not know may have taught itself not to hear that: SIGKILL.
    `parent` is its pid: it may have ended before this was called.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(by), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), by)


def run_to_its_end(main: Coroutine[Any, Any, int], tell: Callable[[SystemExit], None]) -> int:
    """`asyncio.run` for a program that runs the code of others: `sys.exit` there does not end it, and `tell` hears of it.

    asyncio gives a task's SystemExit to whoever awaits the task, and then throws it out of the loop as well. The loop can
    go on from there.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(main)
        while True:
            try:
                return loop.run_until_complete(task)
            except SystemExit as exit_:
                if task.done():
                    raise
                tell(exit_)


def unless_ended(seconds: float, call: Callable[[], None]) -> None:
    """Call this after so long, on a thread of its own, unless this process has come to its end by then.

    Python waits there for every thread that the program has started; what is registered with `atexit` comes after that, and
    has its time.
    """
    ended = threading.Event()
    atexit.register(ended.set)

    def watch() -> None:
        if not ended.wait(seconds):
            call()

    threading.Thread(target=watch, name="holdfast-end", daemon=True).start()


def exit_now(code: int) -> None:
    """End this process without any clean-up: threads that do not listen end with it.

    What was printed is written first, unless nobody reads: a process that must end, and does not, runs jobs that are
    another's by now.
    """
    try:
        flushing = threading.Thread(target=_flush, name="holdfast-last-words", daemon=True)
        flushing.start()
        hear_out(_LAST_WORDS)
        flushing.join(_LAST_WORDS)
    finally:
        os._exit(code)


def _flush() -> None:
    """It may wait for ever: for a reader, or for a lock that another thread holds while it does."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # none, broken, closed
            stream.flush()
