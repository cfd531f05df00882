"""Alembic on both stores: `run_migrations(hf, Base.metadata)` is all that env.py needs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeAlias

from sqlalchemy import Connection, MetaData, create_engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import SAWarning
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from holdfast.kernel.errors import StoreError, UsageError
from holdfast.kernel.loops import LoopThread, call_from_thread
from holdfast.sqlalchemy.engines import Engines
from holdfast.sqlalchemy.postgres import driver_options, url_of
from holdfast.sqlalchemy.sqlite import url_of_file
from holdfast.store.postgres.url import parse

SCHEMA = "holdfast"  # on PostgreSQL, all that is ours
PREFIX = "holdfast_"  # on SQLite
IncludeName: TypeAlias = Callable[[str | None, str, Mapping[str, Any]], bool]


class HasEngines(Protocol):
    @property
    def engines(self) -> Engines: ...


class Program(Protocol):
    @property
    def _inside(self) -> HasEngines: ...


def run_migrations(hf: Program, target_metadata: MetaData | Sequence[MetaData], **options: Any) -> None:
    """Call it in Alembic's env.py, in place of what the template has there; online and offline (`--sql`).

    Autogenerate does not see Holdfast's tables. On SQLite foreign keys are not enforced meanwhile, or batch mode would empty
    child tables; they are checked before the commit. A whole upgrade is one transaction. `options` are those of
    `context.configure`; `include_name` of yours is asked as well. A connection in `config.attributes["connection"]` is used.
    """
    from alembic import context  # noqa: PLC0415  it is what runs env.py

    metadata = _checked(target_metadata)
    engines = hf._inside.engines  # noqa: SLF001  hidden from programs, and not from the engine
    run = _Run(context, engines, metadata, options)
    given = context.config.attributes.get("connection")
    if context.is_offline_mode():
        run.offline()
    elif given is not None:
        run.on(given)
    else:
        run.online()


class _Run:
    def __init__(
        self, context: Any, engines: Engines, metadata: Sequence[MetaData], options: dict[str, Any]
    ) -> None:
        self._context, self._engines, self._metadata = context, engines, metadata
        self._options = options
        self._is_sqlite = engines.kind == "sqlite"

    def offline(self) -> None:
        url = self._sqlite_url() if self._is_sqlite else url_of(parse(self._engines.address), "asyncpg")
        self._configure(set(), url=url, literal_binds=True, dialect_opts={"paramstyle": "named"})
        with self._context.begin_transaction():
            self._context.run_migrations()

    def online(self) -> None:
        if self._is_sqlite:
            engine = create_engine(
                self._sqlite_url(), poolclass=NullPool, connect_args={"foreign_keys": False}
            )
            with engine.connect() as connection:
                self.on(connection)
        else:
            own = LoopThread("holdfast-migrations")  # env.py may run beside a loop
            try:
                call_from_thread(own.loop, self._online())
            finally:
                own.stop()

    async def _online(self) -> None:
        target = parse(self._engines.address)
        how = driver_options(target).get("connect_args", {})
        engine = create_async_engine(url_of(target, "asyncpg"), poolclass=NullPool, connect_args=how)
        async with engine.connect() as connection:
            await connection.run_sync(self.on)

    def on(self, connection: Connection) -> None:
        is_callers = connection.in_transaction()
        hidden = _made_by_extensions(connection)
        if not is_callers:
            connection.rollback()  # or Alembic would take this look for a transaction that somebody else commits
        self._configure(hidden, connection=connection)
        with warnings.catch_warnings(), self._context.begin_transaction(), self._checking(connection):
            # Alembic reads all tables ahead when the program has none yet.
            warnings.filterwarnings("ignore", f"Skipped unsupported reflection of .* {PREFIX}", SAWarning)
            self._context.run_migrations()

    def _sqlite_url(self) -> URL:
        return url_of_file(self._engines.address)

    def _configure(self, hidden: Collection[str], **how: Any) -> None:
        ours = {
            "target_metadata": self._metadata,
            "render_as_batch": True,  # so that what is generated on one store runs on the other
            "transactional_ddl": True,
            "compare_type": True,
            **how,
            **self._options,
        }
        ours["include_name"] = _without_ours(hidden, self._options.get("include_name"))
        self._context.configure(**ours)

    def _checking(self, connection: Connection) -> AbstractContextManager[None]:
        return _Checking(connection) if connection.dialect.name == "sqlite" else nullcontext()


def _checked(metadata: MetaData | Sequence[MetaData]) -> Sequence[MetaData]:
    every = [metadata] if isinstance(metadata, MetaData) else [*metadata]
    for table in (table for each in every for table in each.tables.values()):
        if table.schema == SCHEMA or table.name.startswith(PREFIX):
            raise UsageError(
                f"The table {table.fullname!r} has a name that is kept for Holdfast's own: its schema is {SCHEMA!r} on "
                f"PostgreSQL, and its tables begin with {PREFIX!r} on SQLite. Call it something else."
            )
    return every


def _without_ours(hidden: Collection[str], theirs: IncludeName | None) -> IncludeName:
    def include_name(name: str | None, kind: str, parents: Mapping[str, Any]) -> bool:
        schema = name if kind == "schema" else parents.get("schema_name")
        table = name if kind == "table" else parents.get("table_name")
        if schema == SCHEMA or (table is not None and (table.startswith(PREFIX) or table in hidden)):
            return False
        return theirs is None or theirs(name, kind, parents)

    return include_name


def _made_by_extensions(connection: Connection) -> set[str]:
    """Virtual tables, such as those of FTS5, and the tables in which they keep what is theirs: no metadata describes them."""
    if connection.dialect.name != "sqlite":
        return set()
    rows = connection.exec_driver_sql("PRAGMA table_list")
    return {row.name for row in rows if row.type in ("virtual", "shadow")}


class _Checking(AbstractContextManager[None]):
    """Raises at its end when rows refer to nothing that referred to something before."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._before: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> None:
        self._before = self._broken()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and (worse := self._broken() - self._before):
            told = ", ".join(
                f"{count} of {child!r} refer to rows of {parent!r} that are not there"
                for (child, parent), count in sorted(worse.items())
            )
            raise StoreError(
                f"This migration would leave rows behind that refer to nothing: {told}. It was rolled back. Delete or change "
                "those rows in the migration."
            )

    def _broken(self) -> Counter[tuple[str, str]]:
        rows = self._connection.exec_driver_sql("PRAGMA foreign_key_check")
        return Counter((row[0], row[2]) for row in rows)
