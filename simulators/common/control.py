"""`/_sim`: how a test in another process drives a simulator, and reads what it saw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from simulators.common.clock import Clock
from simulators.common.faults import Faults
from simulators.common.ledger import Ledger


class Control:
    """`settings` shows them, and `change` takes new ones; a ValueError is answered with 400."""

    def __init__(
        self,
        faults: Faults,
        ledger: Ledger,
        clock: Clock,
        settings: Callable[[], dict[str, Any]],
        change: Callable[[dict[str, Any]], None],
    ) -> None:
        self._faults, self._ledger, self._clock = faults, ledger, clock
        self._settings, self._change = settings, change

    def mount(self) -> Mount:
        return Mount(
            "/_sim",
            routes=[
                Route("/ledger", self.ledger),
                Route("/calls", self.calls),
                Route("/faults", self.faults, methods=["GET", "PUT", "DELETE"]),
                Route("/clock", self.clock, methods=["GET", "PUT"]),
                Route("/settings", self.settings, methods=["GET", "PUT"]),
            ],
        )

    async def ledger(self, request: Request) -> Response:
        return JSONResponse(self._ledger.find(request.query_params.get("kind")))

    async def calls(self, _: Request) -> Response:
        return JSONResponse(
            {
                "calls": self._ledger.calls,
                "most_open": self._ledger.most_open,
                "faults": self._faults.happened,
            }
        )

    async def faults(self, request: Request) -> Response:
        if request.method == "DELETE":
            self._faults.clear()
        elif request.method == "PUT":
            return await _told(
                request, lambda told: self._faults.put(told.pop("endpoint"), told.pop("kind"), **told)
            )
        return JSONResponse(self._faults.shown())

    async def clock(self, request: Request) -> Response:
        if request.method == "PUT":
            return await _told(request, lambda told: self._clock.advance(float(told["advance"])))
        return JSONResponse({"now": self._clock.now()})

    async def settings(self, request: Request) -> Response:
        if request.method == "PUT":
            return await _told(request, self._change)
        return JSONResponse(self._settings())


async def _told(request: Request, act: Callable[[dict[str, Any]], None]) -> Response:
    try:
        act(await request.json())
    except (ValueError, KeyError, TypeError) as error:
        return JSONResponse({"error": repr(error)}, 400)
    return JSONResponse({"done": True})
