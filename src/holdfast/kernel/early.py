"""Signals that reach `holdfast worker` or `holdfast relay` before it has begun: it leaves in order, for there is nothing to put back.

Imported first of all: the rest takes a second, and the program of the worker may take longer. What begins then has its own handlers.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

COMMANDS = ("worker", "relay")  # whose processes are stopped by signals


def hear() -> None:
    """When this process is one of those; else its signals are not ours."""
    if not _is_ours(sys.orig_argv, sys.argv):
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _leave)


def _is_ours(command: list[str], arguments: list[str]) -> bool:
    is_module = arguments[:1] == ["-m"] and "holdfast" in command[command.index("-m") + 1 :][:1]
    is_script = os.path.basename(arguments[0] if arguments else "") == "holdfast"  # noqa: PTH119  pathlib takes long to import
    return (is_module or is_script) and arguments[1:2] != [] and arguments[1] in COMMANDS


def _leave(number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, f"holdfast: {signal.Signals(number).name}: leaving before it has begun.\n".encode())
    os._exit(0)


hear()
