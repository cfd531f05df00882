"""Which adapter an object needs, by the names of its classes, so that no driver is imported to find out."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from holdfast.kernel.errors import WrongConnection
from holdfast.store.postgres.adapters.base import Adopted

ACCEPTED = (
    "a SQLAlchemy Connection, Session, AsyncConnection or AsyncSession, a psycopg (3) Connection or AsyncConnection, "
    "an asyncpg Connection, or what `async with hf.transaction() as tx` gives"
)

_ADAPTERS = {
    "asyncpg.Connection": "asyncpg",
    "asyncpg.PoolConnectionProxy": "asyncpg",
    "psycopg.Connection": "psycopg",
    "psycopg.AsyncConnection": "psycopg",
    "sqlalchemy.Connection": "sqlalchemy",
    "sqlalchemy.Session": "sqlalchemy",
    "sqlalchemy.AsyncConnection": "sqlalchemy_async",
    "sqlalchemy.AsyncSession": "sqlalchemy_async",
}

_FROM_POOL = "A pool has many connections and no transaction. Take a connection from it, and pass that one."
_FROM_ENGINE = "It makes connections and has no transaction. Pass a connection or session that it made."
_OF_TRANSACTION = "Pass the connection or session that the transaction was begun on."
_OF_CURSOR = "Pass the cursor's connection."
_NOT_ENTERED = "It is a `with` block that was not entered. Pass the connection or session inside it."
_SQLITE = "It leads to an SQLite database; this store is on PostgreSQL."

_HINTS = {
    "asyncpg.Pool": _FROM_POOL,
    "asyncpg.Transaction": _OF_TRANSACTION,
    "asyncpg.Cursor": _OF_CURSOR,
    "asyncpg.CursorFactory": _OF_CURSOR,
    "asyncpg.PreparedStatement": "Pass the connection that it was prepared on.",
    "psycopg.BaseCursor": _OF_CURSOR,
    "psycopg.BaseTransaction": _OF_TRANSACTION,
    "psycopg_pool.BasePool": _FROM_POOL,
    "psycopg2.connection": "Plain psycopg 2 is not supported. Use it under SQLAlchemy, or use psycopg 3.",
    "psycopg2.cursor": "Plain psycopg 2 is not supported. Use it under SQLAlchemy, or use psycopg 3.",
    "sqlalchemy.Engine": _FROM_ENGINE,
    "sqlalchemy.AsyncEngine": _FROM_ENGINE,
    "sqlalchemy.sessionmaker": _FROM_ENGINE,
    "sqlalchemy.async_sessionmaker": _FROM_ENGINE,
    "sqlalchemy.scoped_session": "It stands for many sessions. Call it, and pass the session that it returns.",
    "sqlalchemy.async_scoped_session": "It stands for many sessions. Call it, and pass the session that it returns.",
    "sqlalchemy.Transaction": _OF_TRANSACTION,
    "sqlalchemy.AsyncTransaction": _OF_TRANSACTION,
    "sqlalchemy.SessionTransaction": _OF_TRANSACTION,
    "sqlalchemy.AsyncSessionTransaction": _OF_TRANSACTION,
    "sqlite3.Connection": _SQLITE,
    "sqlite3.Cursor": _SQLITE,
    "aiosqlite.Connection": _SQLITE,
    "apsw.Connection": _SQLITE,
    "contextlib._GeneratorContextManager": _NOT_ENTERED,
    "contextlib._AsyncGeneratorContextManager": _NOT_ENTERED,
    "builtins.str": "Text is no transaction.",
}


def recognise(tx: object) -> Adopted:
    """The adapter for this object; WrongConnection says what to pass instead."""
    names = kinds(tx)
    for name in names:
        if name in _ADAPTERS:
            # The object exists, so its driver is loaded already.
            adapter = import_module(f"holdfast.store.postgres.adapters.{_ADAPTERS[name]}")
            return cast(Adopted, adapter.adopted(tx))
    raise _refusal(tx, names)


def kinds(tx: object) -> list[str]:
    """The classes of an object as `package.Class`, its own first."""
    return [f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(tx).__mro__]


def _refusal(tx: object, names: list[str]) -> WrongConnection:
    hint = next((_HINTS[name] for name in names if name in _HINTS), "")
    if not hint and names[0].startswith("holdfast."):
        hint = "It is a transaction of another store."
    return WrongConnection(
        f"tx is a {type(tx).__module__}.{type(tx).__qualname__}, which is no transaction of this store. "
        f"{hint}{' ' if hint else ''}What may be passed: {ACCEPTED}."
    )
