"""The same dialect for async engines, on connections of an open store."""

from __future__ import annotations

from typing import Any

from sqlalchemy import pool
from sqlalchemy.engine.url import URL

from holdfast.kernel.errors import UsageError
from holdfast.sqlalchemy.dialect_sync import DRIVER, HoldfastDialect


class HoldfastAsyncDialect(HoldfastDialect):
    driver = f"{DRIVER}_async"
    supports_statement_cache = True
    is_async = True
    has_terminate = True

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:  # noqa: ARG003
        return pool.AsyncAdaptedQueuePool

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        if level == "READ UNCOMMITTED":
            raise UsageError("READ UNCOMMITTED is not there: nobody sees what another has not committed.")
        dbapi_connection.autocommits = level == "AUTOCOMMIT"

    def do_terminate(self, dbapi_connection: Any) -> None:
        dbapi_connection.terminate()


dialect = HoldfastAsyncDialect
