"""Logins at DeviantArt by OAuth2: where to send the artist, and the pairs of tokens that come of it. A pair is used once to renew it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import AsyncOAuth2Client, OAuthError

from holdfast.guards import Breaker, Fault
from holdfast.vault import SecretValue
from publisher.core import hf, settings
from publisher.outside.deviantart import HEADERS
from publisher.outside.errors import DeviantArtError, Passing

SCOPES = "basic browse user stash publish gallery"
REFRESH_LASTS = 90 * 86_400.0  # DeviantArt says three months, and tells it with no answer


class LoginOver(Exception):
    """This token, or this code, brings no pair: only a new login by the artist does."""


def _fault(error: BaseException) -> Fault:
    return Fault.PERMANENT if isinstance(error, LoginOver) else Fault.TRANSIENT


door = hf.guard(
    "deviantart-login",
    timeout=settings.call_timeout_s,
    breaker=Breaker(failure_ratio=0.5, minimum=10, window=60.0, cooldown=30.0),
    classify=_fault,
)


@dataclass(frozen=True)
class Asked:
    """Where the artist is sent, and what the session keeps until the artist is back."""

    url: str
    state: str
    verifier: str


@dataclass(frozen=True)
class Pair:
    access: SecretValue
    refresh: SecretValue
    access_lasts: float  # seconds, as the other
    refresh_lasts: float = REFRESH_LASTS


def ask() -> Asked:
    """A login begins. State and verifier are for this one alone."""
    verifier = generate_token(64)
    client = _made()
    url, state = client.create_authorization_url(
        f"{settings.deviantart_url}/oauth2/authorize", code_verifier=verifier
    )
    return Asked(url, state, verifier)


async def exchange(code: str, verifier: str) -> Pair:
    """The pair for a code, which is good once and for a minute."""
    return await door.call(_pair, "authorization_code", code=code, code_verifier=verifier)


async def refresh(token: SecretValue) -> Pair:
    """A new pair; the old one is dead before this returns. When no answer comes nobody knows which lives: the next try tells."""
    return await door.call(_pair, "refresh_token", refresh_token=token.reveal())


async def revoke(token: SecretValue) -> None:
    """Both tokens of the pair are dead afterwards. One that is dead already is no error."""
    await door.call(_revoke, token.reveal())


async def _pair(kind: str, **told: str) -> Pair:
    async with _opened() as client:
        found = await client.fetch_token(f"{settings.deviantart_url}/oauth2/token", grant_type=kind, **told)
    try:
        return Pair(_token(found["access_token"]), _token(found["refresh_token"]), float(found["expires_in"]))
    except (KeyError, TypeError, ValueError):
        raise Passing("DeviantArt's answer to a login is not as it should be.") from None


def _token(found: Any) -> SecretValue:
    """An empty one would take the place of one that may still be good."""
    if not isinstance(found, str) or not found:
        raise ValueError("There is no token in it.")
    return SecretValue(found)


async def _revoke(token: str) -> None:
    async with _opened() as client:
        answer = await client.request(
            "POST", f"{settings.deviantart_url}/oauth2/revoke", withhold_token=True, data={"token": token}
        )
        if answer.status_code >= 500:
            raise Passing(f"DeviantArt gave no clear answer ({answer.status_code}).")


@asynccontextmanager
async def _opened() -> AsyncIterator[Any]:
    """Its errors are ours: what will never be otherwise, and what may pass."""
    try:
        async with _made() as client:
            yield client
    except OAuthError as error:
        if error.error == "invalid_client":  # our own settings are wrong, and no artist can help
            raise DeviantArtError("DeviantArt does not know this application.") from None
        raise LoginOver(str(error.description or error.error)) from None
    except (httpx2.HTTPError, AuthlibBaseError, ValueError) as error:
        raise Passing(f"DeviantArt gave no answer to a login ({type(error).__name__}).") from None


def _made() -> Any:
    return AsyncOAuth2Client(
        client_id=settings.client_id,
        client_secret=settings.client_secret.reveal(),
        token_endpoint_auth_method="client_secret_post",  # noqa: S106  the name of a method
        redirect_uri=f"{settings.public_url.rstrip('/')}/login/callback",
        scope=SCOPES,
        code_challenge_method="S256",
        headers=HEADERS,
        timeout=settings.call_timeout_s,
        trust_env=False,
    )
