"""Around one call: deadline, retry, breaker, limiter, bulkhead and fallback; they know no storage and no jobs."""

from holdfast.guards.backoff import Backoff
from holdfast.guards.breaker import Breaker, Permit
from holdfast.guards.budget import Budget
from holdfast.guards.bulkhead import Bulkhead
from holdfast.guards.deadline import (
    DEADLINE_HEADER,
    deadline,
    deadline_from,
    parse_deadline,
    render_deadline,
    time_left,
)
from holdfast.guards.fallback import Degraded, Fallback
from holdfast.guards.faults import Classifier, Fault, classify, retry_after_of
from holdfast.guards.guard import Guard, Keyed
from holdfast.guards.headers import (
    Allowance,
    parse_rest,
    parse_retry_after,
    ratelimit_headers,
    render_retry_after,
)
from holdfast.guards.limiter import Limiter
from holdfast.guards.looks import GuardLook
from holdfast.guards.ports import BreakerPeers, BreakerRecord, LimiterRecord, Quota, Slice, State
from holdfast.guards.reservations import Reservation, carrying
from holdfast.kernel.errors import BreakerOpen, BulkheadFull, DeadlinePassed, RateLimited, Refused, TimedOut

__all__ = [
    "DEADLINE_HEADER",
    "Allowance",
    "Backoff",
    "Breaker",
    "BreakerOpen",
    "BreakerPeers",
    "BreakerRecord",
    "Budget",
    "Bulkhead",
    "BulkheadFull",
    "Classifier",
    "DeadlinePassed",
    "Degraded",
    "Fallback",
    "Fault",
    "Guard",
    "GuardLook",
    "Keyed",
    "Limiter",
    "LimiterRecord",
    "Permit",
    "Quota",
    "RateLimited",
    "Refused",
    "Reservation",
    "Slice",
    "State",
    "TimedOut",
    "carrying",
    "classify",
    "deadline",
    "deadline_from",
    "parse_deadline",
    "parse_rest",
    "parse_retry_after",
    "ratelimit_headers",
    "render_deadline",
    "render_retry_after",
    "retry_after_of",
    "time_left",
]
