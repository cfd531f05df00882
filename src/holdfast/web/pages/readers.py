"""What the cookies of a reader say: theme, zone, and what to tell once. Nothing in them is trusted."""

from __future__ import annotations

import base64
import binascii
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.web.asgi import Scope
from holdfast.web.pages.filters import zone_of

THEMES = ("light", "dark")
_THEME, _ZONE, _TOLD = "holdfast_theme", "holdfast_zone", "holdfast_told"
_YEAR = 365 * 86_400
_MINUTE = 60
_LONGEST = 3000  # characters; a cookie has at most 4,096

State = Literal["ok", "run", "wait", "held", "late", "dead", "unknown", "off"]


class Told(msgspec.Struct, frozen=True):
    """A message for the next page."""

    text: str
    state: State = "ok"


def theme_of(request: Request) -> str | None:
    found = request.cookies.get(_THEME)
    return found if found in THEMES else None


def set_theme(answer: Response, scope: Scope, root: str, theme: str) -> None:
    """`system` forgets the choice."""
    if theme in THEMES:
        _set(answer, scope, root, _THEME, theme, seconds=_YEAR)
    else:
        answer.delete_cookie(_THEME, path=root or "/")


def zone_name_of(request: Request) -> str | None:
    """As the reader's browser has told; None when it has not, or told nonsense."""
    name = request.cookies.get(_ZONE, "")
    try:
        zone_of(name)
    except (KeyError, ValueError, OSError):
        return None
    return name


def tell(answer: Response, scope: Scope, root: str, told: Told) -> None:
    """The next page shows it once. It goes through the browser, so it is text and nothing else."""
    text = base64.urlsafe_b64encode(msgspec.json.encode(told)).decode()
    if len(text) > _LONGEST:
        told = msgspec.structs.replace(told, text=told.text[:500] + "…")
        text = base64.urlsafe_b64encode(msgspec.json.encode(told)).decode()
    _set(answer, scope, root, _TOLD, text, seconds=_MINUTE)


def told_to(request: Request) -> Told | None:
    text = request.cookies.get(_TOLD, "")
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=Told) if text else None
    except (binascii.Error, ValueError):  # msgspec's errors are ValueErrors
        return None


def forget_told(answer: Response, root: str) -> None:
    answer.delete_cookie(_TOLD, path=root or "/")


def _set(answer: Response, scope: Scope, root: str, name: str, value: str, *, seconds: int) -> None:
    answer.set_cookie(
        name,
        value,
        max_age=seconds,
        path=root or "/",
        secure=scope.get("scheme") == "https",
        httponly=True,
        samesite="lax",
    )
