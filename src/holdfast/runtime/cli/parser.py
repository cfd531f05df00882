"""The parser of all commands: options may stand before or after the command, and wrong use is one line and exit code 2."""

from __future__ import annotations

import argparse
import os
import re
from datetime import datetime
from difflib import get_close_matches
from typing import Any, NoReturn, Protocol, TypeVar

from holdfast.kernel.clock import now
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.runtime.cli import environment
from holdfast.store.records import FIRST_ID, check_id, is_prefix

A = TypeVar("A", bound=argparse.Action)
CODES = (
    "Exit codes: 0 done, 1 not as wished (nothing found, a check failed), 2 wrong use, 3 the store could not do it, "
    "70 a worker whose run could not be stopped ended itself, 130 stopped by Ctrl-C."
)


class Parser(argparse.ArgumentParser):
    """One for the program, and one for each command below it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "epilog": CODES, **settings})
        self._add_common()

    def _add_common(self) -> None:
        """Below the top they have no default, so that what was given before the command is kept."""
        below: dict[str, Any] = {"default": argparse.SUPPRESS} if " " in self.prog else {}
        self.add_argument(
            "--app", metavar="MODULE:NAME", help="the program's Holdfast, such as shop.tasks:hf", **below
        )
        self.add_argument(
            "--url",
            help="the database, when no program is named; else DATABASE_URL",
            **below,
        )
        self.add_argument(
            "--actor", help="who does it, for the audit rows; else the login name @ the host", **below
        )
        self.add_argument("--json", action="store_true", help="print one JSON document for programs", **below)

    def _add_action(self, action: A) -> A:
        environment.bind(action, self.prog, os.environ)
        _options.update(name for name in action.option_strings if name.startswith("--"))
        return super()._add_action(action)

    def error(self, message: str) -> NoReturn:
        self.exit(
            2, f"{self.prog}: {message.rstrip('.')}.{_meant(message)} `{self.prog} --help` says more.\n"
        )


def _meant(message: str) -> str:
    """Of a misspelt command, choice or option: the one that is nearest, if any is near."""
    if (found := _CHOICE.search(message)) is not None:
        word, near = found[1], re.findall(r"[\w-]+", found[2])
    elif (found := _OPTION.search(message)) is not None:
        word, near = found[1], sorted(_options)
    else:
        return ""
    nearest = get_close_matches(word, near, n=1)
    return f" Did you mean {nearest[0]}?" if nearest else ""


_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_OPTION = re.compile(r"unrecognized arguments: (--[\w-]+)")
_options: set[str] = set()  # of all commands


class Commands(Protocol):
    """Where a module adds its commands."""

    def add_parser(self, name: str, **settings: Any) -> Parser: ...


# --- kinds of values ---


def count(text: str) -> int:
    """A whole number from 1 on."""
    number = int(text) if text.strip().isdecimal() else 0
    if not 1 <= number <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000000")
    return number


def number(text: str) -> int:
    """A position in the log or the id of a stray: they only grow."""
    found = int(text) if text.strip().isdecimal() and len(text) < 20 else -1
    if not 0 <= found < 2**63:
        raise argparse.ArgumentTypeError(f"{show(text)} is not a whole number from 0 on")
    return found


def rate(text: str) -> float:
    """So many a second."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.001 <= number <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number a second from 0.001 to 1000000")
    return number


def seconds(text: str) -> float:
    """A duration."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.001 <= number <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.001 to 86400")
    return number


class Prefix(str):
    """The beginning of a job's id, which is looked for when the store is open."""

    __slots__ = ()


def job_id(text: str) -> str:
    wanted = text.strip().lower()
    if len(wanted) < len(FIRST_ID) and is_prefix(wanted):
        return Prefix(wanted)
    return _id(
        text,
        "a job's id: that is 36 characters, or the first eight or more of them, as `holdfast jobs list` shows them",
    )


def event_id(text: str) -> str:
    return _id(text, "an event's id: those have 36 characters, as `holdfast outbox list` shows them")


def _id(text: str, what: str) -> str:
    """As it was printed; capital letters and spaces around it come from elsewhere."""
    wanted = text.strip().lower()
    try:
        check_id(wanted)
    except UsageError:
        raise argparse.ArgumentTypeError(f"{show(text)} is not {what}") from None
    return wanted


_AGO = re.compile(r"(\d{1,9})(s|min|h|d)")
_UNITS = {"s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


def coming(text: str) -> float:
    """A moment: now, so long from now, or a date and time, of the local zone unless it names one."""
    if text.strip() == "now":
        return 0.0
    if (found := _AGO.fullmatch(text.strip())) is not None:
        return now() + int(found[1]) * _UNITS[found[2]]
    try:
        return max(0.0, datetime.fromisoformat(text.strip()).astimezone().timestamp())
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{show(text)} is neither now, nor so long from now, such as 90s, 30min, 2h or 7d, nor a moment, such as "
            "2026-11-16T10:00"
        ) from None


def past(text: str) -> float:
    """A moment: so long ago, or a date and time, of the local zone unless it names one."""
    if (found := _AGO.fullmatch(text.strip())) is not None:
        return max(0.0, now() - int(found[1]) * _UNITS[found[2]])
    try:
        return max(0.0, datetime.fromisoformat(text.strip()).astimezone().timestamp())
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{show(text)} is neither so long ago, such as 90s, 30min, 2h or 7d, nor a moment, such as 2026-11-16T10:00"
        ) from None
