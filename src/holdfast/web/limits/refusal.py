"""What somebody is told who has come too often."""

from __future__ import annotations

from holdfast.guards.headers import render_retry_after
from holdfast.web.problems import Problem


def refusal(requests: int, seconds: float, retry_after: float | None) -> Problem:
    after = int(render_retry_after(retry_after or 1.0))
    return Problem(
        status=429,
        title="Too many requests",
        code="RATE_LIMIT_EXCEEDED",
        detail=f"At most {requests} requests in {seconds:g} s are taken here. Come back in {after} s.",
        retry_after=after,
    )
