"""Guarded requests: `httpx2.AsyncClient(transport=GuardedTransport(guard))`. Needs holdfast[httpx2], or holdfast[httpx]."""

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
