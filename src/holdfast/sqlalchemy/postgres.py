"""Engines over a PostgreSQL store: with connections of their own, by the store's URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, NullPool, Pool, PoolProxiedConnection

from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.sqlalchemy.dbapi.texts import refuse_end
from holdfast.sqlalchemy.lent import Lent
from holdfast.store.postgres.failures import translate
from holdfast.store.postgres.url import Target, parse

if TYPE_CHECKING:
    from holdfast.store.postgres.store import PostgresStore

POOL_SIZE = 5  # connections of this process beside those of the store
_OF_LIBPQ = {"sslmode": "ssl"}  # what asyncpg calls it


class PostgresEngines:
    def __init__(self, address: str, store: Any) -> None:
        self._target, self._lent = parse(address), Lent()
        self._store: PostgresStore = store

    def make(self) -> AsyncEngine:
        options = driver_options(self._target)
        pool = _checked(options.pop("poolclass", AsyncAdaptedQueuePool), self._check)
        engine = create_async_engine(url_of(self._target, "asyncpg"), poolclass=pool, **options)
        event.listen(engine.sync_engine, "checkout", _refuse_closed)
        self._lent.watch(engine.sync_engine)
        event.listen(engine.sync_engine, "before_cursor_execute", _refuse_end)
        return engine

    def make_blocking(self) -> Engine:
        try:
            import psycopg  # noqa: F401, PLC0415  for sync programs only
        except ImportError as error:
            raise UsageError("A sync engine on PostgreSQL needs psycopg: install psycopg[binary].") from error
        options: dict[str, Any] = {"pool_size": POOL_SIZE, "pool_pre_ping": True}
        if _is_pooled(self._target):
            options = {"poolclass": NullPool, "connect_args": {"prepare_threshold": None}}
        engine = create_engine(url_of(self._target, "psycopg"), **options)
        self._lent.watch(engine)
        event.listen(engine, "before_cursor_execute", _refuse_end)
        return engine

    def _check(self) -> None:
        """Raise unless the store is open on this loop, to which the connections of the async engine belong as well."""
        self._store.database.pool.check()

    def shut(self) -> None:
        """Nothing of the store is lent to them."""

    def forked(self) -> None:
        """In a child: what is open is the parent's."""
        self._lent.leave()


def _checked(kind: type[Pool], check: Callable[[], None]) -> type[Pool]:
    """A pool that gives nothing out where the store is not open: a connection of another loop breaks at its first statement."""

    class Checked(kind):  # type: ignore[valid-type,misc]
        def connect(self) -> PoolProxiedConnection:
            check()
            try:
                return super().connect()  # type: ignore[no-any-return]
            except OSError as error:
                raise translate(error) from error

    return Checked


def url_of(target: Target, driver: str) -> URL:
    """Without what is ours: `parse` has taken it out."""
    url = make_url(target.dsn).set(drivername=f"postgresql+{driver}")
    if driver == "asyncpg":
        query = {_OF_LIBPQ.get(name, name): value for name, value in parse_qsl(urlsplit(target.dsn).query)}
        url = url.set(query=query)
    return url


def driver_options(target: Target) -> dict[str, Any]:
    """How an async engine connects."""
    if not _is_pooled(target):
        return {"pool_size": POOL_SIZE}
    # Behind a PgBouncer without prepared statements; asyncpg prepares each all the same, so names must be its own.
    return {
        "poolclass": NullPool,
        "connect_args": {
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"holdfast_{new_id()}",
        },
    }


def _refuse_closed(connection: Any, *_: Any) -> None:
    """One that the server has closed meanwhile is replaced. asyncpg knows without asking; a ping is three round trips."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError("The server has closed it.")


def _refuse_end(  # what stands before a COMMIT by hand would be stored, jobs too, whatever becomes of the session
    _connection: Any, _cursor: Any, statement: str, _parameters: Any, context: Any, _many: bool
) -> None:
    if context is None or context.is_text:
        refuse_end(statement)


def _is_pooled(target: Target) -> bool:
    return target.statement_cache_size == 0
