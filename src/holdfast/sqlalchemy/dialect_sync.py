"""SQLAlchemy's SQLite dialect over APSW, for sync engines: `sqlite+holdfast:///file.db`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy import DateTime, pool
from sqlalchemy.dialects.sqlite.base import SQLiteDialect, SQLiteExecutionContext
from sqlalchemy.engine.url import URL

from holdfast.kernel.errors import UsageError
from holdfast.sqlalchemy import dbapi
from holdfast.sqlalchemy.moments import Moment

DRIVER = "holdfast"


class Context(SQLiteExecutionContext):
    """Tells the cursor what is known of a statement: one that writes need not be tried on a reader first."""

    def pre_exec(self) -> None:
        super().pre_exec()  # type: ignore[no-untyped-call]
        cursor: Any = self.cursor
        cursor.takes_lock = bool(self.isinsert or self.isupdate or self.isdelete or self.isddl) or (
            self._locks_rows()
        )

    def _locks_rows(self) -> bool:
        """FOR UPDATE: SQLite has no such clause, and SQLAlchemy leaves it out."""
        statement = getattr(self.compiled, "statement", None)
        return getattr(statement, "_for_update_arg", None) is not None

    def create_server_side_cursor(self) -> Any:
        return self._dbapi_connection.cursor(streams=True)


class HoldfastDialect(SQLiteDialect):
    driver = DRIVER
    supports_statement_cache = True
    default_paramstyle = "qmark"
    returns_native_bytes = True
    supports_server_side_cursors = True
    execution_ctx_cls = Context
    colspecs = {**SQLiteDialect.colspecs, DateTime: Moment}  # noqa: RUF012  as SQLAlchemy's dialects have it

    def __init__(self, native_datetime: bool = False, **options: Any) -> None:
        if native_datetime:
            raise UsageError(
                "native_datetime is of the interpreter's sqlite3. Use the types DateTime and Date."
            )
        super().__init__(**options)

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:  # noqa: ARG003
        return pool.QueuePool  # SingletonThreadPool closes connections that are in use

    @classmethod
    def _is_url_file_db(cls, url: URL) -> bool:  # noqa: ARG003
        return True

    def create_connect_args(self, url: URL) -> tuple[list[str], dict[str, Any]]:
        if not url.database or url.database == ":memory:":
            raise UsageError(
                f"{url!r} names no file. Write three slashes and its path: sqlite+holdfast:///shop.db."
            )
        return [url.database], {}

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:  # noqa: ARG002
        return dbapi.sqlite_version_info

    def get_isolation_level_values(self, dbapi_connection: Any) -> list[Any]:  # noqa: ARG002
        return [*self._isolation_lookup, "AUTOCOMMIT"]

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        dbapi_connection.autocommits = level == "AUTOCOMMIT"
        if level != "AUTOCOMMIT":
            super().set_isolation_level(dbapi_connection, level)

    def detect_autocommit_setting(self, dbapi_connection: Any) -> bool:
        return bool(dbapi_connection.autocommits)

    def is_disconnect(self, error: Any, connection: Any, cursor: Any) -> bool:  # noqa: ARG002
        return isinstance(error, dbapi.ProgrammingError) and "closed database" in str(error)


dialect = HoldfastDialect
