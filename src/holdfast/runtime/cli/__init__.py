"""The command line: `holdfast`, and `python -m holdfast`. One module for each group of commands."""

from __future__ import annotations

import errno
import logging
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from holdfast.kernel.errors import HoldfastError, UsageError
from holdfast.kernel.here import version
from holdfast.runtime.cli import (
    alerts,
    blobs,
    cache,
    dead,
    demo,
    doctor,
    flags,
    guards,
    health,
    jobs,
    locks,
    migrate,
    outbox,
    program,
    queues,
    relay,
    sagas,
    schedules,
    tenants,
    trace,
    unknown,
    vault,
    views,
    worker,
    workers,
)
from holdfast.runtime.cli.parser import Parser

__all__ = ["main"]

GROUPS = (
    worker, workers, relay, jobs, dead, unknown, outbox, trace, queues, tenants, schedules, sagas, locks, guards, views, cache, vault, flags, alerts, blobs, migrate, health, doctor, demo
)  # fmt: skip

_SILENT = logging.NullHandler()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _print_anything()
    logging.getLogger("holdfast").addHandler(
        _SILENT
    )  # a command prints its answer; workers and relays have a log
    code, options = 0, None
    try:
        options = parser().parse_args(arguments)
        code = options.run(options)
        sys.stdout.flush()
    except SystemExit as exit_:  # argparse has said why
        return exit_.code if isinstance(exit_.code, int) else 2
    except UsageError as error:
        return _failed(error, 2)
    except HoldfastError as error:
        return _failed(_advised(options, str(error)), 3)
    except KeyboardInterrupt:
        return _failed("stopped.", 130)
    except BrokenPipeError:  # whoever read has enough, such as `head`
        _drop_the_rest(sys.stdout)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        _drop_the_rest(sys.stdout)
        return _failed(f"what it would say cannot be written: {error.strerror}.", 3)
    return code


def parser() -> Parser:
    whole = Parser(prog="holdfast", description="Work that must not be lost and must not be done twice.")
    whole.add_argument("--version", action="version", version=f"Holdfast {version()}")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for group in GROUPS:
        group.add(commands)
    return whole


def _advised(options: Namespace | None, text: str) -> str:
    try:
        return text if options is None else program.command(options, text)
    except UsageError:
        return text


def _failed(why: object, code: int) -> int:
    try:
        print(f"holdfast: {why}", file=sys.stderr)
    except OSError:  # nobody reads it; the exit code still tells
        _drop_the_rest(sys.stderr)
    return code


def _drop_the_rest(stream: TextIO) -> None:
    """Or Python would try to write it once more at its end, and leave with an exit code of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _nowhere() -> TextIO:
    """Whoever started us has closed the stream, and Python has none for it."""
    return Path(os.devnull).open("w")


def _print_anything() -> None:
    """A terminal that knows few characters gets escapes instead of an error, and without any nothing is said."""
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")
