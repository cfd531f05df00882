"""The one cookie of a session: how it is named, read and set."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec

from holdfast.web.asgi import Scope, headers
from holdfast.web.sessions.tokens import is_token

SameSite: TypeAlias = Literal["lax", "strict"]
# Python calls more of Latin-1 a space. A neighbour could set "\xa0__Host-session", which browsers do not guard.
_BLANK = " \t"


class Cookie(msgspec.Struct, frozen=True):
    """With `secure` browsers keep it from other hosts and from plain HTTP: `__Host-` says so in its name."""

    secure: bool
    same_site: SameSite

    @property
    def name(self) -> str:
        return "__Host-session" if self.secure else "session"

    def read(self, scope: Scope) -> str | None:
        """The token that the client has, when it looks like one of ours. Of two by this name, none."""
        pairs = [pair for line in headers(scope, b"cookie") for pair in line.split(";")]
        found = [
            value.strip(_BLANK)
            for name, _, value in (pair.partition("=") for pair in pairs)
            if name.strip(_BLANK) == self.name
        ]
        return found[0] if len(found) == 1 and is_token(found[0]) else None

    def given(self, token: str, seconds: float) -> tuple[bytes, bytes]:
        """The header that gives it to the client."""
        return self._header(f"{self.name}={token}; Max-Age={math.ceil(seconds)}")

    def _header(self, text: str) -> tuple[bytes, bytes]:
        terms = f"; Path=/; HttpOnly; SameSite={self.same_site.capitalize()}"
        return b"set-cookie", f"{text}{terms}{'; Secure' if self.secure else ''}".encode("latin-1")
