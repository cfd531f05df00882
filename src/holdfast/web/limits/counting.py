"""`count_request`: the handler counts a request for somebody whom only the body names, such as the account of a login form."""

from __future__ import annotations

import hashlib

from holdfast.guards.limiter import Limiter
from holdfast.kernel.errors import RateLimited, UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note
from holdfast.web.asgi import HasScope, Scope, scope_of
from holdfast.web.limits.refusal import refusal
from holdfast.web.problems import ProblemError

IN_SCOPE = "holdfast.rate_limits"  # by name: the limits that handlers count by
_LONGEST = 100  # characters of a name to count by


async def count_request(request: HasScope | Scope, limit: str, who: str) -> None:
    """`await count_request(request, "account", form["who"].lower())` before the password is looked at.

    `limit` is the name of a `RateLimit(…, by="handler")`. Beyond it, a ProblemError says 429; `Problems` answers with it.
    """
    found, requests, seconds = _limit(request, limit)
    key = key_of(who)
    try:
        await found.take(key=key)
    except RateLimited as error:
        note("request.limited", limit=limit, key=key)
        raise ProblemError(refusal(requests, seconds, error.retry_after)) from error


def count_request_sync(request: HasScope | Scope, limit: str, who: str) -> None:
    """`count_request`, for handlers that are plain functions."""
    found, requests, seconds = _limit(request, limit)
    key = key_of(who)
    try:
        found.take_sync(key=key)
    except RateLimited as error:
        note("request.limited", limit=limit, key=key)
        raise ProblemError(refusal(requests, seconds, error.retry_after)) from error


def key_of(who: str) -> str:
    """What somebody is counted by: what is too long or no name is hashed, for whoever sends a request writes it."""
    try:
        if len(who) <= _LONGEST:
            return check_name("key", who)
    except UsageError:
        pass
    return "sha-" + hashlib.sha256(who.encode(errors="surrogatepass")).hexdigest()


def _limit(request: HasScope | Scope, name: str) -> tuple[Limiter, int, float]:
    limits = scope_of(request).get(IN_SCOPE, {})
    if name not in limits:
        raise UsageError(
            f'There is no limit {show(name)} to count by: RateLimits(app, hf, [RateLimit({name!r}, requests=5, by="handler")]).'
        )
    found: tuple[Limiter, int, float] = limits[name]
    return found
