"""Where a session's page is asked from: its own site, another one, or no browser at all."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.web.asgi import Scope, header

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Origins:
    """Other origins that may send requests here, such as `https://app.example.org`. Without any only our own may."""

    def __init__(self, origins: Sequence[str] = ()) -> None:
        if isinstance(origins, str):
            raise UsageError(f"origins is a list: origins=[{origins!r}].")
        self._origins = {_checked(each) for each in origins}

    def are_foreign(self, scope: Scope) -> bool:
        """Whether a browser says that another site has made this request."""
        origin = header(scope, b"origin")
        if origin is not None and origin.lower() in self._origins:
            return False
        if (site := header(scope, b"sec-fetch-site")) is not None:
            return site != "same-origin"
        return origin is not None and not _is_host(origin, header(scope, b"host"))

    def is_foreign_socket(self, scope: Scope) -> bool:
        """Browsers let any page open a WebSocket anywhere, with the cookies; Origin is all that tells."""
        origin = header(scope, b"origin")
        if origin is None or origin.lower() in self._origins:
            return False
        return not _is_host(origin, header(scope, b"host"))


def is_safe(scope: Scope) -> bool:
    return scope["method"] in SAFE


def _is_host(origin: str, host: str | None) -> bool:
    """Whether it is the host that was asked. TLS may end at a proxy, so the scheme tells nothing."""
    try:
        parts = urlsplit(origin)
        if parts.scheme not in _PORTS or host is None:
            return False
        asked = urlsplit(f"//{host}")
        ports = [each.port or _PORTS[parts.scheme] for each in (parts, asked)]
    except ValueError:
        return False
    return parts.hostname == asked.hostname and ports[0] == ports[1]


def _checked(origin: str) -> str:
    parts = urlsplit(str(origin))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise UsageError(
            f"An origin is a scheme and a host, such as 'https://app.example.org'; not {show(origin)}."
        )
    return str(origin).lower()
