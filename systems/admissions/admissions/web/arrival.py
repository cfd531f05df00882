"""When a request arrived: that counts for a deadline, however long its files take, and however busy we are."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import Request

from admissions.core import hf

# In the state of a request: when it began, by the clock of this process, which only measures; and what is seen from outside of all middleware.
_BEGAN, _SEEN = "began", "seen"


class Arrivals:
    """Stands outside of all that may wait."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["state"] = {**scope.get("state", {}), _BEGAN: time.monotonic(), _SEEN: {}}
        await self._app(scope, receive, send)


async def arrived_at(request: Request) -> float:
    """Seconds since 1970, by the database's clock: the same for all processes."""
    now = await hf.now()
    began: float | None = getattr(request.state, _BEGAN, None)
    return now if began is None else now - (time.monotonic() - began)
