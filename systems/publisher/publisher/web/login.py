"""Logging in by DeviantArt, and out: the state and the verifier of a login live in the session, and are good once."""

from __future__ import annotations

import hmac

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.web import session_of
from publisher.desk import account
from publisher.desk.refusals import Refusal
from publisher.outside import login as outside
from publisher.outside.deviantart import DeviantArt
from publisher.outside.errors import DeviantArtError
from publisher.web.pages.frame import pages

_ASKED = "login"  # in the session
_LONGEST = 2_000  # characters of what comes back in the address


async def show(request: Request) -> Response:
    """Also for who is logged in: a login at DeviantArt that is over is renewed so."""
    return pages.render(request, "login.html")


async def begin(request: Request) -> Response:
    """To DeviantArt's own page, where the artist says yes or no."""
    asked = outside.ask()
    session_of(request)[_ASKED] = {"state": asked.state, "verifier": asked.verifier}
    return RedirectResponse(asked.url, 303)


async def come_back(request: Request) -> Response:
    """The artist has decided there. What was not begun in this very session is no login."""
    session = session_of(request)
    asked = session.pop(_ASKED, None)
    told = {name: request.query_params.get(name, "")[:_LONGEST] for name in ("state", "code", "error")}
    if asked is None or not hmac.compare_digest(asked["state"].encode(), told["state"].encode()):
        return _again(request, "This login was not begun here, or was used before. Begin it again.")
    if told["error"] or not told["code"]:
        return _again(request, "DeviantArt was not allowed to let us in. Nothing was changed.")
    try:
        pair = await outside.exchange(told["code"], asked["verifier"])
        site: DeviantArt = request.app.state.site
        artist = await account.login_by(pair, await site.whoami(pair.access.reveal()))
    except outside.LoginOver:
        return _again(request, "DeviantArt did not take this login any more. Begin it again.")
    except DeviantArtError:
        return _again(request, "DeviantArt does not answer at the moment. Try again in a minute.")
    except Refusal as refusal:
        return _again(request, refusal.words)
    await session.login(artist.id)
    return pages.redirect(request, "/", tell=f"You are logged in as {artist.username}")


async def logout(request: Request) -> Response:
    await session_of(request).logout()
    return pages.redirect(request, "/login", tell="You are logged out")


async def logout_everywhere(request: Request) -> Response:
    number = await session_of(request).logout_everywhere()
    return pages.redirect(request, "/login", tell=f"You are logged out of {number} browsers")


def _again(request: Request, words: str) -> Response:
    return pages.redirect(request, "/login", tell=words, state="late")


login_routes: list[BaseRoute] = [
    Route("/login", show),
    Route("/login", begin, methods=["POST"]),
    Route("/login/callback", come_back),
    Route("/logout", logout, methods=["POST"]),
    Route("/logout/everywhere", logout_everywhere, methods=["POST"]),
]
