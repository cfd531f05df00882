"""Copied as conftest.py beside SQLAlchemy's own tests of dialects, which run in a process of their own."""

import pytest
from sqlalchemy.dialects import registry

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.dialects.sqlite import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
from sqlalchemy.testing.plugin.pytestplugin import pytest_sessionfinish as theirs  # noqa: E402

from holdfast.sqlalchemy.dialect_sync import HoldfastDialect  # noqa: E402

registry.register("sqlite.holdfast", "conftest", "SuiteDialect")
provision._drivernames.add("holdfast")


class SuiteDialect(HoldfastDialect):
    supports_statement_cache = True

    def create_connect_args(self, url):
        """As with sqlite3, foreign keys are off: some tests have keys that lead to columns that are not unique."""
        args, options = super().create_connect_args(url)
        return args, {**options, "foreign_keys": False}

    @classmethod
    def load_provisioning(cls):
        """The one of SQLite is loaded above."""


def pytest_sessionfinish(session):
    import sys
    from pathlib import Path

    theirs(session)
    Path("libraries.txt").write_text(
        "\n".join(name for name in ("_sqlite3", "sqlite3") if name in sys.modules)
    )
