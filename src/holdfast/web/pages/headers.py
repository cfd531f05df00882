"""PageHeaders: what a browser may do with our answers. Scripts and styles come from here, and from nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.web.asgi import App, Message, Receive, Scope, Send

_POLICY: dict[str, tuple[str, ...]] = {
    "default-src": ("'none'",),
    "script-src": ("'self'",),
    "style-src": ("'self'",),
    "img-src": ("'self'",),
    "font-src": ("'self'",),
    "connect-src": ("'self'",),
    "form-action": ("'self'",),
    "base-uri": ("'none'",),
    "object-src": ("'none'",),
    "frame-ancestors": ("'none'",),
    "require-trusted-types-for": ("'script'",),
    "trusted-types": ("holdfast",),
}
_OPEN = ("img-src", "font-src", "media-src", "connect-src", "form-action", "frame-src")
_SOURCE = re.compile(
    r"(https|wss)://(\*\.)?[a-z0-9.-]+(:\d+)?(/[\w./%-]*)?|http://(127\.0\.0\.1|localhost)(:\d+)?|data:|blob:"
)
_YEAR = 365 * 86_400


class PageHeaders:
    """Middleware: `app = PageHeaders(app)`. Each answer gets a strict Content-Security-Policy, and what belongs to it.

    `allow` opens one directive to named origins, such as `{"img-src": ["https://images.example.org"]}`, or
    `{"form-action": ["https://www.deviantart.com"]}` where a form leads to a login elsewhere. Scripts and styles cannot be
    opened. A header that the app itself has set stays. Over https, browsers are told to stay there for a year.
    """

    def __init__(self, app: App, *, allow: Mapping[str, Sequence[str]] | None = None) -> None:
        self._app = app
        self._fields: tuple[tuple[bytes, bytes], ...] = (
            (b"content-security-policy", policy(allow or {}).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"same-origin"),
            (b"x-frame-options", b"DENY"),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        fields = self._fields
        if scope.get("scheme") == "https":
            fields = (*fields, (b"strict-transport-security", b"max-age=%d" % _YEAR))

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                names = {name.lower() for name, _ in own}
                message = {**message, "headers": [*own, *(each for each in fields if each[0] not in names)]}
            await send(message)

        await self._app(scope, receive, telling)


def policy(allow: Mapping[str, Sequence[str]]) -> str:
    """The Content-Security-Policy, with these sources added."""
    whole = dict(_POLICY)
    for directive, sources in allow.items():
        if directive not in _OPEN:
            raise UsageError(f"allow cannot open {show(directive)}, only {', '.join(_OPEN)}.")
        for source in sources:
            if not _SOURCE.fullmatch(source):
                raise UsageError(
                    f"allow for {directive} has {show(source)}; name origins, such as https://images.example.org."
                )
        whole[directive] = (*whole.get(directive, ("'self'",)), *sources)
    return "; ".join(f"{directive} {' '.join(sources)}" for directive, sources in whole.items())
