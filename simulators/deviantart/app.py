"""The simulated DeviantArt as one ASGI app: its routes, and what drives it."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute, Route

from simulators.common.clock import Clock
from simulators.common.control import Control
from simulators.common.faults import Faults
from simulators.common.ledger import Ledger
from simulators.deviantart import browse, drawing, gallery, stash
from simulators.deviantart.calls import KINDS, Endpoint, World, endpoint
from simulators.deviantart.limits import Limits
from simulators.deviantart.oauth import OAuth
from simulators.deviantart.page import page
from simulators.deviantart.settings import Settings
from simulators.deviantart.state import State

BASE = "/api/v1/oauth2"
# Path, methods, scope, and what answers; the name for faults and the ledger is the path's beginning.
ENDPOINTS: tuple[tuple[str, str, str, Endpoint], ...] = (
    ("/placebo", "GET POST", "basic", gallery.placebo),
    ("/user/whoami", "GET", "basic", gallery.whoami),
    ("/stash/submit", "POST", "stash", stash.submit),
    ("/stash/publish", "POST", "publish", stash.publish),
    ("/stash/publish/userdata", "GET", "publish", stash.userdata),
    ("/stash/item/{itemid}", "GET", "stash", stash.item),
    ("/stash/space", "GET", "stash", stash.space),
    ("/gallery/folders", "GET", "browse", gallery.folders),
    ("/gallery/folders/create", "POST", "gallery", gallery.create_folder),
    ("/gallery/folders/update_order", "POST", "gallery", gallery.order_folder),
    ("/gallery/folders/move_deviations", "POST", "gallery", gallery.move_deviations),
    ("/gallery/all", "GET", "browse", gallery.gallery),
    ("/gallery/{folderid}", "GET", "browse", gallery.gallery),
    ("/deviation/{deviationid}", "GET", "browse", gallery.deviation),
    ("/browse/dailydeviations", "GET", "browse", browse.daily),
    ("/browse/tags", "GET", "browse", browse.tags),
    ("/browse/tags/search", "GET", "browse", browse.tag_names),
    ("/browse/topic", "GET", "browse", browse.topic),
    ("/browse/topics", "GET", "browse", browse.topics),
    ("/browse/home", "GET", "browse", browse.home),
)


class Simulator:
    """`Simulator(seed=7).app` is the server's app; faults, ledger, clock and settings are for the test that holds it."""

    def __init__(self, seed: int = 0) -> None:
        self.state, self.ledger, self.clock = State(seed), Ledger(), Clock()
        self.faults, self.settings = Faults(KINDS, seed), Settings()
        self.limits = Limits(self.settings, self.clock)
        self.world = World(self.state, self.faults, self.ledger, self.clock, self.settings, self.limits)
        self.app = Starlette(routes=self._routes(), middleware=[Middleware(GZipMiddleware, minimum_size=0)])

    def _routes(self) -> list[BaseRoute]:
        oauth = OAuth(self.world)
        control = Control(self.faults, self.ledger, self.clock, self.settings.shown, self.settings.change)
        return [
            Route("/", page(self.world)),
            *drawing.routes,
            Route("/oauth2/authorize", oauth.authorize, methods=["GET", "POST"]),
            Route("/oauth2/token", oauth.token, methods=["GET", "POST"]),
            Route("/oauth2/revoke", oauth.revoke, methods=["POST"]),
            *(
                Route(f"{BASE}{path}", endpoint(self.world, _name(path), scope, act), methods=methods.split())
                for path, methods, scope, act in ENDPOINTS
            ),
            control.mount(),
        ]


def _name(path: str) -> str:
    """`stash/publish`."""
    return path.partition("/{")[0].lstrip("/")
