"""The store's URL: what goes to the driver, and what is ours."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_seconds


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where to connect to, and how. The options may stand in the URL: `postgresql://…?pool_size=20`."""

    dsn: str
    pool_size: int = 10  # connections of this process, one of them kept for renewing and finishing
    pool_wait: float = 10.0  # seconds to wait for a free one
    connect_timeout: float = 10.0
    command_timeout: float | None = (
        30.0  # seconds until a statement without an answer is given up; None: never
    )
    statement_cache_size: int = 100  # 0 behind a PgBouncer without prepared statements
    patience: float = 5.0  # seconds in which a failed try is made again, when nothing can have been stored

    def __post_init__(self) -> None:
        check_int("pool_size", self.pool_size, 1, 1000)
        check_int("statement_cache_size", self.statement_cache_size, 0, 10_000)
        if self.command_timeout is not None:
            check_seconds("command_timeout", self.command_timeout, 0.001, 3600)
        for name in ("pool_wait", "connect_timeout"):
            check_seconds(name, getattr(self, name), 0.001, 3600)
        check_seconds("patience", self.patience, 0, 3600)


def parse(url: str) -> Target:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UsageError(f"The store's URL cannot be read: {error}.") from None
    scheme = parts.scheme.partition("+")[0]  # postgresql+asyncpg:// and the like come from SQLAlchemy
    if scheme not in ("postgres", "postgresql"):
        raise UsageError(
            f"A PostgreSQL URL begins with postgresql:// (or postgres://, or postgresql+driver://); got {parts.scheme!r}."
        )
    ours: dict[str, Any] = {}
    theirs: list[tuple[str, str]] = []
    kinds = {field.name: field.type for field in msgspec.structs.fields(Target) if field.name != "dsn"}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in kinds:
            ours[name] = _convert(name, value, kinds[name])
        else:
            theirs.append((name, value))
    dsn = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(theirs), ""))
    return Target(dsn=dsn, **ours)


def without_password(url: str) -> str:
    """To be shown as part of a command: whoever types it gives the password in another way."""
    parts = urlsplit(url)
    user, at, places = parts.netloc.rpartition("@")
    query = [
        (name, value) for name, value in parse_qsl(parts.query) if name not in ("password", "sslpassword")
    ]
    netloc = f"{user.partition(':')[0]}{at}{places}"
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(query), ""))


def _convert(name: str, value: str, kind: type) -> int | float:
    try:
        return int(value) if kind is int else float(value)
    except ValueError:
        raise UsageError(f"{name} in the store's URL must be a number, not {value!r}.") from None
