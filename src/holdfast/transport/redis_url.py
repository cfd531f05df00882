"""Where a Redis is: the URL checked when it is given, and shown without its password."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec
import redis.asyncio as driver

from holdfast.kernel.errors import UsageError
from holdfast.kernel.masking import MASK
from holdfast.kernel.show import show

_CLASSES: dict[str, type[driver.Connection | driver.UnixDomainSocketConnection]] = {
    "redis": driver.Connection,
    "rediss": driver.SSLConnection,
    "unix": driver.UnixDomainSocketConnection,
}
_TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_PORTS, _DATABASES = range(1, 65_536), range(2**31)


class Target(msgspec.Struct, frozen=True):
    """What a connection is made with."""

    shown: str  # for people: without the password
    password: str | None
    kind: Any  # the driver's class
    options: dict[str, Any]  # of that class
    more: dict[str, str]  # of the query: what the caller of `parse` knows


def parse(url: Any, *, more: Iterable[str] = ()) -> Target:
    """`more`: names that may stand in the query beside those of a connection."""
    if not isinstance(url, str):
        raise UsageError(f"A Redis URL is text, not {show(url)} ({type(url).__name__}).")
    parts = _split(url)
    if parts.scheme not in _CLASSES:
        raise UsageError(f"A Redis URL begins with redis://, rediss:// or unix://; got {show(parts.scheme)}.")
    shown = _shown(parts)
    own, others = _query(parts, shown, tuple(more))
    options = {**_place(parts, shown), **own}
    password = None if parts.password is None else unquote(parts.password)
    options |= {"username": unquote(parts.username or "") or None, "password": password or None}
    return Target(shown, password or None, _CLASSES[parts.scheme], options, others)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port, parts.hostname
    except ValueError as error:
        # The text may hold a password, and what is wrong with it may be a part of one.
        raise UsageError("A Redis URL is like redis://:password@host:6379/0; this one cannot be read.") from (
            None if "@" in url else error
        )
    return parts


def _shown(parts: SplitResult) -> str:
    credentials, at, place = parts.netloc.rpartition("@")
    user, colon, password = credentials.partition(":")
    masked = f"{user}{colon}{MASK if password else ''}{at}{place}"
    return f"{parts.scheme}://{masked}{parts.path}"


def _place(parts: SplitResult, shown: str) -> dict[str, Any]:
    if parts.scheme == "unix":
        if not parts.path:
            raise UsageError(f"The Redis URL {shown} has no path of a socket. Write unix:///run/redis.sock.")
        return {"path": unquote(parts.path)}
    if not parts.hostname:
        raise UsageError(f"The Redis URL {shown} has no host. Write redis://localhost:6379/0.")
    port = 6379 if parts.port is None else parts.port
    if port not in _PORTS:
        raise UsageError(f"The port in the Redis URL {shown} is from 1 to 65535.")
    number = unquote(parts.path).strip("/")
    return {"host": unquote(parts.hostname), "port": port, "db": _database(number or "0", shown)}


def _database(text: str, shown: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) not in _DATABASES:
        raise UsageError(f"The database in the Redis URL {shown} is a number, not {show(text)}.")
    return int(text)


def _query(parts: SplitResult, shown: str, more: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, str]]:
    given: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    allowed = (*{"redis": (), "rediss": _TLS, "unix": ("db",)}[parts.scheme], *more)
    for name in given:
        if name not in allowed:
            raise UsageError(
                f"The Redis URL {shown} has the option {show(name)}; there are: {', '.join(allowed) or 'none'}."
            )
    if "db" in given:
        given["db"] = _database(given["db"], shown)
    others = {name: given.pop(name) for name in more if name in given}
    return given, others
