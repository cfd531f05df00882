"""The token of a form. The session's middleware gives and checks it; this is the one place that knows how to ask."""

from __future__ import annotations

from markupsafe import Markup

from holdfast.web.asgi import Scope

FIELD = "csrf_token"
_KEY = "holdfast.csrf"  # in the scope: a function that gives the token


def token_of(scope: Scope) -> str | None:
    """None when no middleware gives tokens."""
    give = scope.get(_KEY)
    return str(give()) if callable(give) else None


def field_of(scope: Scope) -> Markup:
    """The hidden field, or nothing."""
    token = token_of(scope)
    if token is None:
        return Markup("")
    return Markup('<input type="hidden" name="{}" value="{}">').format(FIELD, token)
