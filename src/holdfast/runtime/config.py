"""Which database to use: said in code, else in the environment, else one SQLite file in the current folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

import msgspec

from holdfast.events.wire import Wire
from holdfast.kernel.errors import UsageError
from holdfast.store.ports import Store
from holdfast.store.postgres.url import parse, without_password
from holdfast.transport.port import Transport

if TYPE_CHECKING:
    from holdfast.fleet.redis import RedisGuards
    from holdfast.fleet.redis_cache import RedisCache
    from holdfast.fleet.redis_visits import RedisVisits

DEFAULT_URL = "sqlite:///holdfast.db"
_ACCEPTED = "sqlite:///file.db, sqlite:////absolute/file.db, postgresql://user@host/database"


_VARIABLES = ("HOLDFAST_URL", "DATABASE_URL")  # the first that is there counts
_UNFIT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_REDIS = ("redis://", "rediss://", "unix://")


class Location(msgspec.Struct, frozen=True):
    """Where the store is. Printing it shows no password."""

    kind: str  # sqlite or postgres
    address: str  # a file's path, or a URL
    listen_url: str | None = None  # where to listen for wake-ups, when a pooler stands before the database

    read_url: str | None = None  # a replica, for snapshots

    def __repr__(self) -> str:
        return masked(self.address)


def locate(
    url: str | None = None, environment: Mapping[str, str] = os.environ, *, read_url: str | None = None
) -> Location:
    """The first that is given: the argument, HOLDFAST_URL, DATABASE_URL, the default.

    HOLDFAST_LISTEN_URL leads to the same PostgreSQL without the pooler that the others may go through, and `read_url`, or
    HOLDFAST_READ_URL, to a replica of it.
    """
    given = _given(url, environment)
    scheme = given.partition("://")[0].lower()
    if scheme == "sqlite":
        if read_url is not None:
            raise UsageError(
                "read_url names a replica, and a SQLite file has none: snapshots read the file itself. Leave it out."
            )
        return Location("sqlite", _path(given))
    if scheme.partition("+")[0] in ("postgres", "postgresql"):
        listen = environment.get("HOLDFAST_LISTEN_URL") or None
        address = f"postgresql://{given.partition('://')[2]}"
        _check_places(address)
        parse(address)
        return Location("postgres", address, listen, _replica(read_url, environment))
    raise UsageError(f"{masked(given)!r} names no database that Holdfast knows. Such as: {_ACCEPTED}.")


def _replica(url: str | None, environment: Mapping[str, str]) -> str | None:
    given = url or environment.get("HOLDFAST_READ_URL")
    if not given:
        return None
    if given.partition("://")[0].lower().partition("+")[0] not in ("postgres", "postgresql"):
        raise UsageError(f"read_url names a replica of the PostgreSQL; got {masked(given)!r}.")
    address = f"postgresql://{given.partition('://')[2]}"
    _check_places(address)
    parse(address)
    return address


def names_database(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment says which, also wrongly."""
    return any(name in environment for name in _VARIABLES)


def _given(url: object, environment: Mapping[str, str]) -> str:
    """What is empty was most likely meant to be something, and another database than that shall not be used."""
    found = next((name for name in _VARIABLES if name in environment), None) if url is None else None
    given = environment[found] if found is not None else DEFAULT_URL if url is None else url
    if not isinstance(given, str):
        raise UsageError(
            f"A database is named by a URL, a string; got {type(given).__name__}. Such as: {_ACCEPTED}."
        )
    if not given.strip():
        raise UsageError(
            f"{found or 'The URL of the database'} is empty. Name a database, such as: {_ACCEPTED}"
            f"{f'; or unset {found}' if found else ''}."
        )
    if (wrong := _UNFIT.search(given)) is not None:
        raise UsageError(
            f"The URL of the database has the character U+{ord(wrong[0]):04X} at position {wrong.start()}, which no URL has. "
            f"Such as: {_ACCEPTED}."
        )
    return given


def _check_places(url: str) -> None:
    """The driver would say what is wrong with a port only when it connects, and not which."""
    try:
        places = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        raise UsageError(f"The URL of the database cannot be read. Such as: {_ACCEPTED}.") from None
    for place in places.split(","):
        _, colon, port = place.rpartition("]")[2].rpartition(":")
        if colon and port and not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65_536):
            raise UsageError(
                f"{port!r} in {masked(url)!r} is no port: that is a number from 1 to 65535. Such as: {_ACCEPTED}."
            )


def guards_at(url: str | None, environment: Mapping[str, str] = os.environ) -> RedisGuards | None:
    """Where guards meet: the argument, HOLDFAST_GUARDS_URL, or None for the store itself."""
    given = url or environment.get("HOLDFAST_GUARDS_URL")
    if not given:
        return None
    if not str(given).startswith(_REDIS):
        raise UsageError(
            f"guards names a Redis, such as redis://localhost:6379/0; got {masked(str(given))!r}."
        )
    from holdfast.fleet.redis import RedisGuards  # noqa: PLC0415  its driver is an extra

    return RedisGuards(given)


def transport_at(given: str | Transport | None, environment: Mapping[str, str] = os.environ) -> Wire | None:
    """The broker that carries events: the argument, HOLDFAST_TRANSPORT_URL, or None for the store itself."""
    if given is not None and not isinstance(given, str):
        return Wire(given)
    if not (url := given or environment.get("HOLDFAST_TRANSPORT_URL")):
        return None
    from holdfast.transport.url import open_transport  # noqa: PLC0415  drivers are extras

    return Wire(open_transport(url))


def cache_at(url: str | None, environment: Mapping[str, str] = os.environ) -> RedisCache | None:
    """Where cached functions keep their values: the argument, HOLDFAST_CACHE_URL, or None for the store itself."""
    given = url or environment.get("HOLDFAST_CACHE_URL")
    if not given:
        return None
    if not str(given).startswith(_REDIS):
        raise UsageError(
            f"cache names a Redis, such as redis://localhost:6379/0; got {masked(str(given))!r}."
        )
    from holdfast.fleet.redis_cache import RedisCache  # noqa: PLC0415  its driver is an extra

    return RedisCache(given)


def sessions_at(url: str | None, environment: Mapping[str, str] = os.environ) -> RedisVisits | None:
    """Where sessions of web pages are kept: the argument, HOLDFAST_SESSIONS_URL, or None for the store itself."""
    given = url or environment.get("HOLDFAST_SESSIONS_URL")
    if not given:
        return None
    if not str(given).startswith(_REDIS):
        raise UsageError(
            f"sessions names a Redis, such as redis://localhost:6379/0; got {masked(str(given))!r}."
        )
    from holdfast.fleet.redis_visits import RedisVisits  # noqa: PLC0415  its driver is an extra

    return RedisVisits(given)


def _path(url: str) -> str:
    path, _, options = url[len("sqlite://") :].partition("?")
    if options:
        raise UsageError(f"{url!r} has options ({options!r}); a SQLite file takes none.")
    path = unquote(path)
    if "\0" in path:
        raise UsageError(f"{url!r} has a NUL character in its path.")
    if not path.startswith("/") or path == "/":
        raise UsageError(f"{url!r} has no file. Write three slashes and its path: sqlite:///jobs.db.")
    if path[1:] == ":memory:":
        raise UsageError("Work kept in memory is lost with the process. Name a file: sqlite:///jobs.db.")
    return path[1:]


def command_url(location: Location) -> str:
    """The URL as it is typed in a command, without a password."""
    if location.kind == "sqlite":
        return f"sqlite:///{quote(location.address)}"
    return without_password(location.address)


def masked(url: str) -> str:
    """The URL without its password."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return "a URL that cannot be read"
    shown = url.replace(f":{password}@", ":***@", 1) if password else url
    return re.sub(r"([?&](?:password|sslpassword)=)[^&]*", r"\1***", shown)


def open_store(location: Location) -> Store:
    """The store for a location; the driver is imported only when it is needed."""
    if location.kind == "sqlite":
        from holdfast.store.sqlite.store import SqliteStore  # noqa: PLC0415

        return SqliteStore(location.address)
    try:
        from holdfast.store.postgres.store import PostgresStore  # noqa: PLC0415
    except ImportError as error:
        raise UsageError("PostgreSQL needs its driver: install holdfast[postgres].") from error
    return PostgresStore(location.address, listen_url=location.listen_url, read_url=location.read_url)
