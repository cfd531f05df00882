"""Processes: children are started, waited for and ended here; and how this one ends."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1


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
    """Start a program, say one thing, and hear its answer: its exit code and what it wrote. Killed when this is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        answer, _ = await process.communicate(said)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, answer


def die_with_parent(parent: int) -> None:
    """On Linux: end this process, as by SIGTERM, when the one that started it ends, however that happens.

    `parent` is its pid: it may have ended before this was called.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)


def exit_now(code: int) -> None:
    """End this process without any clean-up: threads that do not listen end with it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
