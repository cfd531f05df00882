"""The options of processes that write a log: its format, its level, and more of it."""

from __future__ import annotations

import argparse

from holdfast.kernel.logged import flush
from holdfast.kernel.voice import hear_out
from holdfast.observe.output import FORMATS, LEVELS, set_up
from holdfast.runtime.cli.parser import Parser


def add_logging(parser: Parser) -> None:
    parser.add_argument(
        "--log-format", choices=FORMATS, default=None,
        help="console: lines for people; json: one object a line. Asked for, it is used also where the program has a log of its own",
    )  # fmt: skip
    parser.add_argument(
        "--log-level",
        choices=tuple(LEVELS),
        default=None,
        help="what is less than this is not written (info)",
    )
    parser.add_argument(
        "-v", dest="verbose", action="count", default=0,
        help="write more: each job that begins and succeeds, and tracebacks of failed attempts; -vv: of all libraries, too [HOLDFAST_LOG_LEVEL=debug]",
    )  # fmt: skip


def begin_log(options: argparse.Namespace) -> None:
    """After the program was imported, which may have made a log of its own."""
    set_up(form=options.log_format, level=options.log_level, verbose=options.verbose)


def end_log() -> None:
    """What was left out, and what is not written yet: the process ends here."""
    flush()
    hear_out()


def logging_arguments(options: argparse.Namespace) -> list[str]:
    """The same for a process that is started for this one."""
    told = {"--log-format": options.log_format, "--log-level": options.log_level}
    given = [word for name, value in told.items() if value is not None for word in (name, value)]
    return [*given, *(["-" + "v" * options.verbose] if options.verbose else [])]
