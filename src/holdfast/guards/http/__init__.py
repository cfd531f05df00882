"""Guarded requests through httpx: `httpx.AsyncClient(transport=GuardedTransport(guard))`. Needs holdfast[httpx]."""

try:
    import httpx as _httpx  # noqa: F401  only to say what is missing
except ImportError as error:
    raise ImportError("holdfast.guards.http needs httpx: install holdfast[httpx].") from error

from holdfast.guards.http.errors import (
    RequestBreakerOpen,
    RequestBulkheadFull,
    RequestDeadlinePassed,
    RequestRateLimited,
    RequestRefused,
    RequestTimedOut,
)
from holdfast.guards.http.transports import GuardedTransport, SyncGuardedTransport

__all__ = [
    "GuardedTransport",
    "RequestBreakerOpen",
    "RequestBulkheadFull",
    "RequestDeadlinePassed",
    "RequestRateLimited",
    "RequestRefused",
    "RequestTimedOut",
    "SyncGuardedTransport",
]
