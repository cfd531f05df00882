"""httpx, and httpx2, which goes on where httpx has stopped: what is made here fits the clients of both, if both are installed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any


def _installed() -> list[ModuleType]:
    found: list[ModuleType] = []
    for name in ("httpx2", "httpx"):
        try:
            library = import_module(name)
        except ImportError:
            continue
        if library not in found:  # one may stand under both names
            found.append(library)
    if not found:
        raise ImportError("holdfast.guards.http needs httpx: install holdfast[httpx2], or holdfast[httpx].")
    return found


LIBRARIES = _installed()


def library_of(request: Any) -> Any:
    """The one that this request was made by."""
    return next(each for each in LIBRARIES if isinstance(request, each.Request))


def kinds(name: str) -> tuple[Any, ...]:
    """The classes of this name, for isinstance."""
    return tuple(getattr(each, name) for each in LIBRARIES)


# Each stands for the classes of its name in both libraries. They have the same methods, so one set of types is enough.
if TYPE_CHECKING:
    from httpx import (
        AsyncBaseTransport,
        AsyncByteStream,
        BaseTransport,
        HTTPStatusError,
        ReadError,
        ReadTimeout,
        Request,
        Response,
        SyncByteStream,
        TimeoutException,
        TransportError,
    )
else:

    def _joined(name: str) -> type:
        return type(name, kinds(name), {"__doc__": f"{name} of each library that is installed."})

    AsyncBaseTransport, BaseTransport = _joined("AsyncBaseTransport"), _joined("BaseTransport")
    AsyncByteStream, SyncByteStream = _joined("AsyncByteStream"), _joined("SyncByteStream")
    HTTPStatusError, TransportError = _joined("HTTPStatusError"), _joined("TransportError")
    TimeoutException, ReadTimeout = _joined("TimeoutException"), _joined("ReadTimeout")
    ReadError = _joined("ReadError")
    Request = Response = Any

__all__ = [
    "LIBRARIES",
    "AsyncBaseTransport",
    "AsyncByteStream",
    "BaseTransport",
    "HTTPStatusError",
    "ReadError",
    "ReadTimeout",
    "Request",
    "Response",
    "SyncByteStream",
    "TimeoutException",
    "TransportError",
    "kinds",
    "library_of",
]
