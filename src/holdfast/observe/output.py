"""Where the lines of a worker go: stderr, by a handler that never waits, unless the program has a log of its own."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

from holdfast.kernel import voice
from holdfast.observe.formats import ConsoleFormatter, JsonFormatter

FORMATS = ("console", "json")
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
HOME = logging.getLogger("holdfast")

_speaks: StderrHandler | None = None  # what this process says by itself


class StderrHandler(logging.Handler):
    """Writing never waits and never raises: whoever reads may be gone, or asleep."""

    def createLock(self) -> None:  # noqa: N802  the name is logging's
        """None: the voice has a queue, and who must end this process shall wait for nobody."""
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            voice.say(self.format(record))


def set_up(*, form: str | None = None, level: str | None = None, verbose: int = 0) -> Callable[[], None]:
    """Have the lines written; returns how to undo it.

    A program that has handlers of its own, on the root or on `holdfast`, keeps them, and nothing is written beside
    them; with a form asked for, the lines of Holdfast alone are written in it.
    """
    global _speaks  # noqa: PLW0603  one for each process
    root = logging.getLogger()
    before = (HOME.level, HOME.propagate, root.level, _speaks)
    home, handler = (HOME if any(_handlers()) else root), None
    if home is root or form is not None:
        handler = _speaks = StderrHandler()
        handler.setFormatter(JsonFormatter() if form == "json" else ConsoleFormatter(colour=_is_coloured()))
        home.addHandler(handler)
        HOME.propagate = home is root
        voice.tell_lost = _lost
    _set_levels(root if home is root else HOME, level, verbose)

    def undo() -> None:
        global _speaks
        HOME.setLevel(before[0])
        HOME.propagate, _speaks = before[1], before[3]
        root.setLevel(before[2])
        if handler is not None:
            home.removeHandler(handler)
            voice.tell_lost = voice.lost

    return undo


def last_words(text: str) -> None:
    """For a process that ends now, on any thread: past handlers and their locks, which may be held for ever."""
    if _speaks is None:
        voice.say(f"holdfast: {text}")
    else:
        voice.say(_line(text))


def _set_levels(whole: logging.Logger, level: str | None, verbose: int) -> None:
    """`verbose`: 1 for all of Holdfast, 2 for all that logs."""
    if whole is not HOME and whole.level == logging.WARNING:  # as Python leaves it
        whole.setLevel(logging.INFO)
    if level is not None:
        whole.setLevel(LEVELS[level])
    if verbose:
        HOME.setLevel(logging.DEBUG)
    if verbose > 1:
        whole.setLevel(logging.DEBUG)


def _handlers() -> Iterator[logging.Handler]:
    for logger in (logging.getLogger(), HOME):
        yield from (each for each in logger.handlers if not isinstance(each, logging.NullHandler))


def _is_coloured() -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _lost(number: int) -> str:
    return _line(f"{number} lines are lost: nobody read them")


def _line(text: str) -> str:
    assert _speaks is not None
    name = "holdfast.process"
    return _speaks.format(logging.LogRecord(name, logging.WARNING, __file__, 0, text, (), None))
