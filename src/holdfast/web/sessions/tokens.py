"""What cookies and forms carry: random text that says nothing, and what is kept or compared in its place."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

from holdfast.kernel.randomness import random_bytes

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def new_token() -> str:
    """256 random bits, as a cookie carries them."""
    return _text(random_bytes(32))


def is_token(text: str | None) -> bool:
    return text is not None and _TOKEN.fullmatch(text) is not None


def id_of(token: str) -> str:
    """As it is kept: who reads the database cannot take anybody's place."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_secret() -> str:
    return random_bytes(32).hex()


def form_token(secret: str, token: str) -> str:
    """What a form of this session carries. It is another after each login, and nobody can make it from a cookie."""
    return _text(hmac.new(secret.encode(), b"form:" + token.encode(), hashlib.sha256).digest())


def is_same(one: str, other: str) -> bool:
    """In a time that does not tell how much of it fits."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _text(random: bytes) -> str:
    return base64.urlsafe_b64encode(random).rstrip(b"=").decode()
