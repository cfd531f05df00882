"""What an error means for the next call: a fault is transient, permanent, throttled or unknown."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from typing import Any, TypeAlias

from holdfast.guards.headers import LONGEST_PAUSE, SupportsGet, clamped, parse_rest, parse_retry_after
from holdfast.kernel.errors import (
    TROUBLE,
    CommitUnknown,
    DeadlinePassed,
    HoldfastError,
    Refused,
    TimedOut,
    UsageError,
)
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note


class Fault(StrEnum):
    """What is known of a call that failed."""

    TRANSIENT = "transient"  # it was not done, and may be done if it is asked for again
    PERMANENT = (
        "permanent"  # the same call will fail again: the other side answered, or our own code is wrong
    )
    THROTTLED = "throttled"  # it was not done: the other side asks us to come later
    UNKNOWN = "unknown"  # nobody knows whether it was done


def check_faults(option: str, faults: Collection[Fault]) -> frozenset[Fault]:
    """Those that an option names."""
    try:
        return frozenset(Fault(each) for each in faults)
    except (TypeError, ValueError):
        raise UsageError(f"{option} is a set of faults ({', '.join(Fault)}); not {show(faults)}.") from None


Classifier: TypeAlias = Callable[[Exception], Fault]

_OURS = (TypeError, ValueError, LookupError, AttributeError, NameError, AssertionError, ArithmeticError)
_BUGS = (*_OURS, NotImplementedError, ImportError, SyntaxError, RecursionError, MemoryError)
_FILES = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
# Nothing has left this machine, or nobody has taken it.
_UNSENT = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}
_HTTPX = ("httpx", "httpx2")
# Their errors, by name: neither need be installed. What is not here may have been done.
_OF_HTTPX = {
    **dict.fromkeys(["ConnectError", "ConnectTimeout", "PoolTimeout"], Fault.TRANSIENT),  # never sent
    **dict.fromkeys(["UnsupportedProtocol", "LocalProtocolError"], Fault.PERMANENT),  # our own mistake
}
_BY_STATUS = {408: Fault.UNKNOWN, 425: Fault.TRANSIENT, 429: Fault.THROTTLED}


def classify(error: Exception) -> Fault:
    """What the error tells by its type, or by the HTTP status that it carries. What tells nothing is unknown."""
    if isinstance(error, HoldfastError):
        return _of_ours(error)
    if (status := status_of(error)) is not None:
        return _of_status(status, error)
    if isinstance(error, OSError):  # before the bugs: some of them are ValueErrors too
        return _of_system(error)
    if (name := _name_in_httpx(error)) is not None:
        return _OF_HTTPX.get(name, Fault.UNKNOWN)
    return Fault.PERMANENT if isinstance(error, _BUGS) else Fault.UNKNOWN


def _of_ours(error: HoldfastError) -> Fault:
    if isinstance(error, TimedOut | CommitUnknown):
        return Fault.UNKNOWN
    if isinstance(error, DeadlinePassed):
        return Fault.PERMANENT  # no attempt can be in time any more
    return Fault.TRANSIENT if isinstance(error, (Refused, *TROUBLE)) else Fault.PERMANENT


def _of_status(status: int, error: Exception) -> Fault:
    if status == 503 and retry_after_of(error) is not None:
        return Fault.THROTTLED
    if status >= 500:
        return Fault.UNKNOWN  # it may have failed after it was done
    return _BY_STATUS.get(status, Fault.PERMANENT)


def _of_system(error: OSError) -> Fault:
    if isinstance(error, _FILES):
        return Fault.PERMANENT
    if error.errno in _UNSENT or type(error).__name__ == "gaierror":  # no such host, for now
        return Fault.TRANSIENT
    return Fault.UNKNOWN


def _name_in_httpx(error: Exception) -> str | None:
    """The name of its type there, or of the one that it was made from; None: it comes from elsewhere."""
    kinds = (kind for kind in type(error).__mro__ if kind.__module__.partition(".")[0] in _HTTPX)
    found = next(kinds, None)
    return None if found is None else found.__name__


def is_timeout(error: Exception) -> bool:
    """Whether the other side let us wait in vain. Those of httpx are no TimeoutError."""
    return isinstance(error, TimeoutError) or (_name_in_httpx(error) or "").endswith("Timeout")


def status_of(error: Exception) -> int | None:
    """The HTTP status that an error of the usual clients carries."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status"):
            status = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599:
                return int(status)
    return None


def retry_after_of(error: Exception, longest: float = LONGEST_PAUSE) -> float | None:
    """How long the other side asks us to wait: an attribute `retry_after`, or the headers of the answer; at most `longest` seconds.

    With a 429 also until its quota, of which nothing is left, begins anew.
    """
    asked: Any = getattr(error, "retry_after", None)
    if asked is not None:
        return parse_retry_after(asked, longest) if isinstance(asked, str) else clamped(asked, longest)
    for headers in headers_of(error):
        text = headers.get("Retry-After")
        if isinstance(text, str):
            return parse_retry_after(text, longest)
    if status_of(error) == 429:
        return next(
            (rest for headers in headers_of(error) if (rest := parse_rest(headers, longest)) is not None),
            None,
        )
    return None


def headers_of(error: Exception) -> Iterator[SupportsGet]:
    """Those of the answer that an error of the usual clients carries."""
    for holder in (error, getattr(error, "response", None)):
        headers: Any = getattr(holder, "headers", None)
        if callable(getattr(headers, "get", None)):
            yield headers


def fault_of(error: Exception, classifier: Classifier) -> Fault:
    """What the classifier says; one that fails, or says something else, must not break the call that it is asked for."""
    try:
        return Fault(classifier(error))
    except Exception as failure:  # noqa: BLE001  it is a stranger's
        note("classifier.failed", error=show(error), failure=repr(failure))
        return Fault.UNKNOWN
