"""The token of a form, which the middleware of sessions gives and checks: this is the one place that asks for it."""

from __future__ import annotations

from markupsafe import Markup

from holdfast.web.asgi import Scope
from holdfast.web.sessions.forms import FIELD
from holdfast.web.sessions.middleware import CSRF


def token_of(scope: Scope) -> str | None:
    """None when no middleware gives tokens, or this reader needs none."""
    give = scope.get(CSRF)
    return (give() or None) if callable(give) else None


def field_of(scope: Scope) -> Markup:
    """The hidden field, or nothing."""
    token = token_of(scope)
    if token is None:
        return Markup("")
    return Markup('<input type="hidden" name="{}" value="{}">').format(FIELD, token)
