"""Processes: children are started, waited for and ended here; and how this one ends."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.kernel.clock import timeout

_PR_SET_PDEATHSIG = 1
_LONGEST_LINE = 16 * 2**20  # bytes of an answer
_LEAVING = 5.0  # seconds between a child's answer and its end


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


async def talk_to_child(command: Sequence[str], said: bytes) -> tuple[int, bytes]:
    """Start a program, say one thing, and hear one line: its exit code, and what it wrote.

    At the end, and when this is cancelled, it is killed with all that it has started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=_LONGEST_LINE,
    )
    try:
        line = await _ask(process, said)
        with suppress(TimeoutError):
            async with timeout(_LEAVING):
                await process.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):  # macOS: all of the group have ended
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    assert process.returncode is not None
    return process.returncode, line


async def _ask(process: asyncio.subprocess.Process, said: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(said)
    with suppress(BrokenPipeError, ConnectionResetError):  # it ended before it listened
        await process.stdin.drain()
    process.stdin.close()
    return await process.stdout.readline()


def own_answers() -> int:
    """For the child: the pipe on which its line is awaited. What is printed goes where errors go.

    Processes that this one forks do not have it: whoever reads must see its end when this one ends.
    """
    answers = os.dup(1)
    os.dup2(2, 1)
    os.register_at_fork(after_in_child=lambda: os.close(answers))
    return answers


def die_with_parent(parent: int) -> None:
    """On Linux: end this process, as by SIGTERM, when the one that started it ends, however that happens.

    `parent` is its pid: it may have ended before this was called.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)


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


def exit_now(code: int) -> None:
    """End this process without any clean-up: threads that do not listen end with it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
