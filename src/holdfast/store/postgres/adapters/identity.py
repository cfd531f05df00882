"""Does a connection lead to this store? Asked once for each connection, without harming the caller's transaction."""

from __future__ import annotations

from collections.abc import Generator
from weakref import WeakKeyDictionary

from holdfast.kernel.errors import WrongConnection
from holdfast.store.statements import Rows, Statement

_stores: WeakKeyDictionary[object, str] = WeakKeyDictionary()

# Selecting from a table that is missing or forbidden would abort the caller's transaction: look in the catalogue first.
_LOOK = Statement("""\
SELECT current_database()::text, current_user::text, CASE
    WHEN to_regnamespace('holdfast') IS NULL THEN 'missing'
    WHEN NOT has_schema_privilege(to_regnamespace('holdfast')::oid, 'USAGE') THEN 'forbidden'
    WHEN to_regclass('holdfast.store') IS NULL THEN 'missing'
    WHEN NOT has_table_privilege(to_regclass('holdfast.store')::oid, 'SELECT') THEN 'forbidden'
    ELSE 'there' END""")
_READ = Statement("SELECT id::text FROM holdfast.store")


def known(connection: object, store_id: str) -> bool:
    return _stores.get(connection) == store_id


def remember(connection: object, store_id: str) -> None:
    _stores[connection] = store_id


def belongs(store_id: str) -> Generator[Statement, Rows, None]:
    """Raise WrongConnection unless the connection's database holds the store with this id."""
    [(database, user, found)] = yield _LOOK
    if found == "missing":
        raise WrongConnection(
            f"This connection leads to the database {database!r}, which has no tables of Holdfast; the store's are in "
            "another one. A job is stored in the transaction of the store's database: pass a connection to that one."
        )
    if found == "forbidden":
        raise WrongConnection(
            f"This connection's role {user!r} may not use the schema holdfast of the database {database!r}. "
            "Grant it USAGE on the schema, and SELECT, INSERT, UPDATE and DELETE on its tables."
        )
    ids = [row[0] for row in (yield _READ)]
    if ids != [store_id]:
        raise WrongConnection(
            f"This connection leads to the database {database!r}, which has another Holdfast store ({', '.join(ids)}) "
            f"than the one that is open ({store_id}). Pass a connection to the store's own database."
        )
