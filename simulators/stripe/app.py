"""The simulated Stripe as one ASGI app: its routes, and what drives it."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from simulators.common.clock import Clock
from simulators.common.control import Control
from simulators.common.faults import Faults
from simulators.common.ledger import Ledger
from simulators.stripe import intents
from simulators.stripe.calls import KINDS, Endpoint, World, endpoint
from simulators.stripe.settings import Settings
from simulators.stripe.state import State
from simulators.stripe.webhooks import Webhooks

# Path, method, its name for faults and the ledger, and what answers.
ENDPOINTS: tuple[tuple[str, str, str, Endpoint], ...] = (
    ("/v1/payment_intents", "POST", "create", intents.create),
    ("/v1/payment_intents", "GET", "list", intents.search),
    ("/v1/payment_intents/{intent}", "GET", "retrieve", intents.retrieve),
    ("/v1/payment_intents/{intent}/confirm", "POST", "confirm", intents.confirm),
    ("/v1/payment_intents/{intent}/cancel", "POST", "cancel", intents.cancel),
    ("/v1/payment_methods", "POST", "method", intents.method),
    ("/v1/refunds", "POST", "refund", intents.refund),
    ("/v1/refunds", "GET", "refunds", intents.refunds),
)


class Simulator:
    """`Simulator(seed=7).app` is the server's app; faults, ledger, clock and settings are for the test that holds it."""

    def __init__(self, seed: int = 0) -> None:
        self.state, self.ledger, self.clock = State(seed), Ledger(), Clock()
        self.faults, self.settings = Faults(KINDS, seed), Settings()
        self.webhooks = Webhooks(self.state, self.settings, self.ledger, self.clock, seed)
        self.world = World(self.state, self.faults, self.ledger, self.clock, self.settings, self.webhooks)
        self.app = Starlette(routes=self._routes())

    def _routes(self) -> list[BaseRoute]:
        control = Control(self.faults, self.ledger, self.clock, self.settings.shown, self.settings.change)
        return [
            *(
                Route(path, endpoint(self.world, name, act), methods=[method])
                for path, method, name, act in ENDPOINTS
            ),
            Route("/_sim/events", self._events),
            control.mount(),
        ]

    async def _events(self, _: Request) -> Response:
        """All events, also those that were never sent."""
        return JSONResponse(self.state.events)
