"""OAuth2: the page on which an artist allows a client, tokens of which a refresh kills the old pair first, and revoking."""

from __future__ import annotations

import base64
import hashlib
import html
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from simulators.common.server import cut
from simulators.deviantart.answers import Failed, error, invalid, server_error
from simulators.deviantart.calls import World
from simulators.deviantart.state import CLIENT_ID, CLIENT_SECRET, Artist, Code, Grant, new_token

_LOOPBACK = ("127.0.0.1", "localhost", "::1", "testserver")


class OAuth:
    def __init__(self, world: World) -> None:
        self._world = world

    # --- the artist allows it ---

    async def authorize(self, request: Request) -> Response:
        """GET shows the page; POST is the artist's decision: `artist`, or `deny`."""
        try:
            asked = _asked(request.query_params)
        except Failed as failed:
            return failed.response
        if request.method == "GET":
            return HTMLResponse(_page(request, sorted(self._world.state.artists)))
        async with request.form() as form:
            name = form.get("artist")
        if not isinstance(name, str) or not name:
            return _back(asked, error="access_denied", error_description="The user has denied the request.")
        code = new_token()
        self._world.state.codes[code] = Code(
            artist=self._world.state.known(name),
            redirect_uri=asked["redirect_uri"],
            scope=asked.get("scope") or "basic",
            challenge=asked.get("code_challenge"),
            until=self._world.clock.now() + self._world.settings.code_lasts,
        )
        return _back(asked, code=code)

    # --- tokens ---

    async def token(self, request: Request) -> Response:
        with self._world.ledger.call("token"):
            try:
                return await self._token(request)
            except Failed as failed:
                return failed.response

    async def _token(self, request: Request) -> Response:
        async with request.form() as form:
            _check_client(request, form)
            kind = _given(request, form, "grant_type")
            name = "refresh" if kind == "refresh_token" else "token"
            fault = self._world.faults.next(name)
            if fault is not None and fault.kind == "server-error":
                raise server_error()
            if fault is not None and fault.kind == "refused":
                cut(request.scope)
            match kind:
                case "authorization_code":
                    grant = self._by_code(request, form)
                case "refresh_token":
                    grant = self._refreshed(_given(request, form, "refresh_token"))
                case "client_credentials":
                    return JSONResponse(self._for_client())
                case _:
                    raise invalid("The grant_type is unsupported.")
        if fault is not None and fault.kind in ("lost", "half"):
            cut(request.scope)  # the old pair is dead by now, and nobody has the new one
        return JSONResponse(self._shown(grant))

    def _by_code(self, request: Request, form: FormData) -> Grant:
        code = self._world.state.codes.pop(_given(request, form, "code") or "", None)
        if code is None or code.until <= self._world.clock.now():
            raise invalid("Incorrect authorization code.")
        if code.redirect_uri != _given(request, form, "redirect_uri"):
            raise invalid("The redirect_uri is not that of the authorization.")
        if code.challenge is not None and code.challenge != _challenge(
            _given(request, form, "code_verifier")
        ):
            raise invalid("Incorrect code_verifier.")
        grant = self._new(code.artist, code.scope)
        self._world.ledger.add("granted", artist=code.artist.username, at=self._world.clock.now())
        return grant

    def _refreshed(self, token: str | None) -> Grant:
        """The old pair dies first, whatever becomes of the answer."""
        old = self._world.state.grants.get(token or "")
        now = self._world.clock.now()
        if old is None or old.refresh != token or old.is_dead or old.refresh_until <= now:
            self._world.ledger.add("refresh_refused", at=now)
            raise invalid("The refresh_token is invalid.")
        old.is_dead = True
        grant = self._new(old.artist, old.scope)
        self._world.ledger.add("refreshed", artist=old.artist.username, at=now)
        return grant

    def _new(self, artist: Artist, scope: str) -> Grant:
        now, settings = self._world.clock.now(), self._world.settings
        access, refresh = new_token(), new_token()
        grant = Grant(
            artist, scope, access, now + settings.access_lasts, refresh, now + settings.refresh_lasts
        )
        self._world.state.grants |= {access: grant, refresh: grant}
        return grant

    def _shown(self, grant: Grant) -> dict[str, object]:
        return {
            "expires_in": int(self._world.settings.access_lasts),
            "status": "success",
            "access_token": grant.access,
            "token_type": "Bearer",
            "refresh_token": grant.refresh,
            "scope": grant.scope,
        }

    def _for_client(self) -> dict[str, object]:
        """It may look, and submits nothing."""
        grant = self._new(self._world.state.known("client"), "browse")
        return {
            "expires_in": int(self._world.settings.access_lasts),
            "status": "success",
            "access_token": grant.access,
            "token_type": "Bearer",
        }

    async def revoke(self, request: Request) -> Response:
        async with request.form() as form:
            grant = self._world.state.grants.get(_given(request, form, "token") or "")
        if grant is not None:
            grant.is_dead = True
            self._world.ledger.add("revoked", artist=grant.artist.username, at=self._world.clock.now())
        return JSONResponse({"status": "success"})


def _asked(query: QueryParams) -> dict[str, str]:
    asked = dict(query)
    if asked.get("client_id") != CLIENT_ID:
        raise error(401, "invalid_client", "Client authentication failed.")
    if asked.get("response_type") != "code":
        raise invalid("The response_type is unsupported.")
    parts = urlsplit(asked.get("redirect_uri", ""))
    if parts.scheme not in ("http", "https") or parts.hostname not in _LOOPBACK:
        raise invalid("The redirect_uri is not in the whitelist of this client.")
    if asked.get("code_challenge") and asked.get("code_challenge_method") != "S256":
        raise invalid("The code_challenge_method is unsupported.")
    return asked


def _back(asked: dict[str, str], **answer: str) -> Response:
    told = {**answer, **({"state": asked["state"]} if "state" in asked else {})}
    mark = "&" if "?" in asked["redirect_uri"] else "?"
    return RedirectResponse(f"{asked['redirect_uri']}{mark}{urlencode(told)}", 302)


def _check_client(request: Request, form: FormData) -> None:
    given = _given(request, form, "client_id"), _given(request, form, "client_secret")
    kind, _, basic = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "basic":
        name, _, secret = base64.b64decode(basic).decode("utf-8", "replace").partition(":")
        given = name, secret
    if given != (CLIENT_ID, CLIENT_SECRET):
        raise error(401, "invalid_client", "Client authentication failed.")


def _given(request: Request, form: FormData, name: str) -> str | None:
    value = form.get(name, request.query_params.get(name))
    return value if isinstance(value, str) else None


def _challenge(verifier: str | None) -> str:
    digest = hashlib.sha256((verifier or "").encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _page(request: Request, artists: list[str]) -> str:
    target = html.escape(f"{request.url.path}?{request.url.query}", quote=True)
    buttons = "".join(
        f'<button name="artist" value="{html.escape(name)}">Allow as {html.escape(name)}</button> '
        for name in artists
    )
    return (
        '<!doctype html><html lang="en"><title>Simulated DeviantArt</title>'
        "<h1>Simulated DeviantArt</h1><p>An application asks to publish in your name. No account of anybody is touched here.</p>"
        f'<form method="post" action="{target}">{buttons}<button name="deny" value="1">Deny</button></form></html>'
    )
