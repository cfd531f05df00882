"""Deadlines: when a call must be over. It is carried to every guard inside, and to other services in a header."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, Token

from holdfast.kernel.clock import monotonic
from holdfast.kernel.names import check_seconds
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note

DEADLINE_HEADER = "Holdfast-Deadline"
_LONGEST = 86_400.0  # seconds; a header that says more is cut to this
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)

# A moment of the monotonic clock of this process: nobody who sets the wall clock can move it.
UNTIL: ContextVar[float | None] = ContextVar("holdfast_deadline", default=None)


@contextmanager
def deadline(seconds: float | None) -> Generator[None, None, None]:
    """`with deadline(20):` no guard inside starts an attempt later, nor lets one run longer. An outer one may be earlier.

    `with deadline(None):` is for starting work that outlives the call: it has none.
    """
    until = None if seconds is None else sooner(monotonic() + check_seconds("deadline", seconds))
    mark = UNTIL.set(until)
    try:
        yield
    finally:
        set_back(mark)


@contextmanager
def deadline_from(
    headers: Mapping[str, str] | Iterable[tuple[bytes, bytes]], *, longest: float = _LONGEST
) -> Generator[None, None, None]:
    """`with deadline_from(request.headers):` the caller's deadline, at most `longest` seconds, for all that is done for him.

    Takes a mapping, or the pairs of an ASGI scope. Without the header, or with one that cannot be read, it changes nothing.
    """
    told = [parse_deadline(value, longest) for value in _values(headers)]
    found = [seconds for seconds in told if seconds is not None]
    with deadline(min(found)) if found else nullcontext():
        yield


def _values(headers: Mapping[str, str] | Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    wanted = DEADLINE_HEADER.lower()
    for name, value in headers.items() if isinstance(headers, Mapping) else headers:
        if _text(name).lower() == wanted:
            yield _text(value)


def _text(part: str | bytes) -> str:
    return part if isinstance(part, str) else part.decode("latin-1")


def set_back(mark: Token[float | None]) -> None:
    """As it was before. A coroutine that the collector ends is in another context, where there is nothing to set back."""
    try:  # noqa: SIM105  suppress costs more than all the rest of this
        UNTIL.reset(mark)
    except ValueError:
        pass


def sooner(moment: float | None) -> float | None:
    """The moment, or the deadline around this call when that is earlier."""
    outer = UNTIL.get()
    return outer if moment is None or (outer is not None and outer < moment) else moment


def time_left() -> float | None:
    """Seconds until the deadline around this call, at least 0; None when there is none."""
    until = UNTIL.get()
    return None if until is None else max(0.0, until - monotonic())


def render_deadline() -> str | None:
    """The value of `DEADLINE_HEADER` for a request that is made now: the seconds left. None: send no header."""
    left = time_left()
    return None if left is None else f"{left:.3f}"


def parse_deadline(text: str | None, longest: float = _LONGEST) -> float | None:
    """The seconds left that a header tells, for `deadline()`. What cannot be read is ignored, with a note."""
    if text is None:
        return None
    if _SECONDS.fullmatch(text.strip()) is None:
        note("deadline.ignored", value=show(text))
        return None
    return min(float(text), longest)
