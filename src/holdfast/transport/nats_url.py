"""Where a NATS is: the URL checked when it is given, and shown without its password or token."""

from __future__ import annotations

import ssl
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.masking import MASK
from holdfast.kernel.show import show
from holdfast.transport.settings import NAMES

_TLS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_ALLOWED = ("creds", *_TLS, *NAMES)
_LIKE = "Write nats://user:password@host:4222."


class Target(msgspec.Struct, frozen=True):
    """What a connection is made with."""

    shown: str  # for people: without secrets
    secrets: list[str]
    options: dict[str, Any]  # of the driver's `connect`
    more: dict[str, str]  # of the query: what every transport knows


def parse(url: str) -> Target:
    """`nats://[user:password@ | token@]host[:port][,host[:port]…][?…]`."""
    parts = _split(url)
    credentials, at, places = parts.netloc.rpartition("@")
    user, colon, password = credentials.partition(":")
    masked = f"{user}{colon}{MASK if password else ''}" if colon else (MASK if user else "")
    shown = f"{parts.scheme}://{masked}{at}{places}{parts.path}"
    given = _query(parts, shown)
    options: dict[str, Any] = {"servers": _servers(parts.scheme, places, shown)}
    if colon:
        options |= {"user": unquote(user), "password": unquote(password)}
    elif user:
        options["token"] = unquote(user)
    if "creds" in given:
        options["user_credentials"] = _credentials(given["creds"], shown)
    if parts.scheme == "tls" or any(name in given for name in _TLS):
        options["tls"] = _context(given, shown)
    secrets = [unquote(each) for each in (password or (user if not colon else ""),) if each]
    return Target(shown, secrets, options, {name: given[name] for name in NAMES if name in given})


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        # The text may hold a password, and what is wrong with it may be a part of one.
        raise UsageError(f"This NATS URL cannot be read. {_LIKE}") from (None if "@" in url else error)
    if parts.scheme not in ("nats", "tls"):
        raise UsageError(f"A NATS URL begins with nats:// or tls://; got {show(parts.scheme)}.")
    return parts


def _servers(scheme: str, places: str, shown: str) -> list[str]:
    found = []
    for place in places.split(","):
        try:
            parts = urlsplit(f"{scheme}://{place}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or port == 0:
            raise UsageError(f"The NATS URL {shown} has no host, or a port that is none. {_LIKE}")
        found.append(f"{scheme}://{place}" if port else f"{scheme}://{place.rstrip(':')}:4222")
    return found


def _query(parts: SplitResult, shown: str) -> dict[str, str]:
    if parts.path.strip("/"):
        raise UsageError(f"The NATS URL {shown} has a path. To name what events go to, write ?topic=….")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    for name in given:
        if name not in _ALLOWED:
            raise UsageError(
                f"The NATS URL {shown} has the option {show(name)}; there are: {', '.join(_ALLOWED)}."
            )
    return given


def _credentials(file: str, shown: str) -> str:
    if not Path(file).is_file():
        raise UsageError(f"The NATS URL {shown} names a file of credentials that is not there: {show(file)}.")
    if find_spec("nkeys") is None:
        raise UsageError("NATS with a file of credentials needs nkeys: pip install nats-py[nkeys]")
    return file


def _context(given: dict[str, str], shown: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=given.get("ssl_ca_certs"))
        if "ssl_certfile" in given:
            context.load_cert_chain(given["ssl_certfile"], given.get("ssl_keyfile"))
    except OSError as error:  # an SSLError is one too
        raise UsageError(f"The certificates of the NATS URL {shown} cannot be read: {error}.") from error
    return context
