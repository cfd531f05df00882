"""Connections of a PostgreSQL server that engines of this process have opened, and what a forked child does with them."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from sqlalchemy import Engine, event
from sqlalchemy.pool import PoolProxiedConnection

from holdfast.kernel.errors import NotOpen
from holdfast.kernel.forks import disown, keep
from holdfast.store.forked import FORKED


class Lent:
    """The child must not speak on them: the end of a session there would roll back the transaction of its parent."""

    def __init__(self) -> None:
        self._open: WeakSet[Any] = WeakSet()  # the drivers' connections
        self._out: WeakSet[PoolProxiedConnection] = (
            WeakSet()
        )  # those in the hands of a session, or of a program

    def watch(self, engine: Engine) -> None:
        event.listen(engine, "connect", lambda connection, _: self._open.add(_of_driver(connection)))
        event.listen(engine, "checkout", lambda _connection, _record, proxy: self._out.add(proxy))

    def leave(self) -> None:
        """In a child: their sockets lead nowhere here, and sessions that have one say so."""
        connections, self._open = [*self._open], WeakSet()
        proxies, self._out = [*self._out], WeakSet()
        keep([*connections, *proxies])
        for each in connections:
            disown(_HasSocket(each) if hasattr(each, "fileno") else each._transport)  # noqa: SLF001  as the store does
        for proxy in proxies:
            if proxy.is_valid and hasattr(proxy.driver_connection, "fileno"):
                proxy.dbapi_connection = _Inherited()  # type: ignore[misc]  # as its own `detach` does


class _Inherited:
    """What a sync session of the parent has in the child: all that it does is refused, but to end."""

    def rollback(self) -> None:
        """The parent decides about its transaction."""

    def close(self) -> None:
        """It stays open in the parent."""

    def __getattr__(self, _: str) -> Any:
        raise NotOpen(FORKED)


class _HasSocket:
    """A connection of psycopg, which knows the number of its socket, as `disown` asks for it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def get_extra_info(self, _: str) -> Any:
        return self._connection


def _of_driver(connection: Any) -> Any:
    """asyncpg's own is inside of SQLAlchemy's."""
    return getattr(connection, "driver_connection", connection)
