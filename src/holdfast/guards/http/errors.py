"""What a guarded transport raises: each error is a guard's and one of httpx, so that either kind of `except` catches it."""

from __future__ import annotations

from holdfast.guards.http.library import (
    HTTPStatusError,
    ReadTimeout,
    Request,
    Response,
    TimeoutException,
    TransportError,
)
from holdfast.kernel.errors import (
    BreakerOpen,
    BulkheadFull,
    DeadlinePassed,
    HoldfastError,
    RateLimited,
    Refused,
    TimedOut,
)


class RequestRefused(TransportError, Refused):
    """The guard has not let the request through: it was not sent."""


class RequestBreakerOpen(RequestRefused, BreakerOpen):
    """The breaker is open, or its half-open permits are out."""


class RequestRateLimited(RequestRefused, RateLimited):
    """The limiter's next moment is too far away."""


class RequestBulkheadFull(RequestRefused, BulkheadFull):
    """All permits are out, and there is no room or no time to wait for one."""


class RequestDeadlinePassed(TimeoutException, RequestRefused, DeadlinePassed):
    """There was no time left to send it."""


class RequestTimedOut(ReadTimeout, TimedOut):
    """No whole answer came in the time that the guard gives: nobody knows whether it was done."""


_REFUSALS: dict[type[Refused], type[RequestRefused]] = {
    BreakerOpen: RequestBreakerOpen,
    RateLimited: RequestRateLimited,
    BulkheadFull: RequestBulkheadFull,
    DeadlinePassed: RequestDeadlinePassed,
}


def translated(error: HoldfastError) -> HoldfastError:
    """The same as an error of httpx; what has nothing to do with a request stays what it is."""
    if isinstance(error, RequestRefused | RequestTimedOut):
        return error  # of a guarded transport inside this one
    if isinstance(error, TimedOut):
        return RequestTimedOut(str(error))
    if not isinstance(error, Refused):
        return error
    kind = next((_REFUSALS[each] for each in type(error).__mro__ if each in _REFUSALS), RequestRefused)
    refusal = kind(str(error))
    refusal.retry_after = error.retry_after
    return refusal


class Failed(HTTPStatusError):
    """An answer with an error's status, on its way through the guard. The caller gets the answer, never this."""

    def __init__(self, request: Request, response: Response) -> None:
        # Not the URL, which may hold a secret: this text is noted.
        said = f"{request.method} {request.url.host}: {response.status_code} {response.reason_phrase}"
        Exception.__init__(self, said.rstrip())  # not by way of two constructors that want all of it
        self.request, self.response = request, response
