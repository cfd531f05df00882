"""A connection that has the file to itself, for programs in which the store is not open: scripts, tools and migrations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import apsw

from holdfast.kernel.errors import StoreError
from holdfast.kernel.forks import Turn
from holdfast.sqlalchemy.dbapi import errors
from holdfast.sqlalchemy.dbapi.connection import Connection
from holdfast.sqlalchemy.dbapi.functions import add_functions
from holdfast.sqlalchemy.dbapi.running import Outcome, Request, run
from holdfast.store.sqlite import refusals
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.served import LOCK_WAIT

T = TypeVar("T")


class OwnConnection(Connection):
    """It takes and gives back the write lock itself, and nobody cuts it off."""

    def __init__(self, path: str, *, foreign_keys: bool = True) -> None:
        refusals.check_library(apsw.sqlitelibversion())
        refusals.check_file_system(path)
        refusals.check_fork(path)
        if (found := refusals.foreign_descriptor(path)) is not None:
            raise errors.OperationalError(found)
        self._path, self._foreign_keys = path, foreign_keys
        try:
            self._db = self._opened()
        except StoreError as error:
            raise errors.OperationalError(str(error)) from error
        self._turn = Turn()
        self._closed = False

    def _opened(self) -> Db:
        db = Db(self._path)
        db.connection.set_busy_timeout(int(LOCK_WAIT * 1000))
        db.execute_all(f"PRAGMA foreign_keys = {'ON' if self._foreign_keys else 'OFF'}")
        add_functions(db.connection)
        return db

    @property
    def in_transaction(self) -> bool:
        return not self._closed and not self._db.rests and self._db.connection.in_transaction

    @property
    def isolation_level(self) -> str | None:
        """As with sqlite3: None means that BEGIN and COMMIT are left to the program."""
        return None if self.autocommits else "IMMEDIATE"

    @isolation_level.setter
    def isolation_level(self, value: str | None) -> None:
        self.autocommits = value is None

    def create_function(self, name: str, narg: int, func: Callable[..., Any], **how: bool) -> None:
        made = self._db.connection.create_scalar_function
        made(name, func, narg, deterministic=how.get("deterministic", False))

    def check_statement(self, sql: str) -> None:
        if not self.autocommits:
            super().check_statement(sql)

    def perform(self, request: Request, *, takes_lock: bool) -> Outcome:
        if self.autocommits:  # as it is: also BEGIN, VACUUM and PRAGMA, which no transaction may be around
            return self.write(partial(run, request=request))
        return super().perform(request, takes_lock=takes_lock)

    def read(self, work: Callable[[apsw.Connection], T]) -> T:
        return self._do(work)

    def write(self, work: Callable[[apsw.Connection], T], sql: str = "") -> T:  # noqa: ARG002
        return self._do(work)

    def write_alone(self, work: Callable[[apsw.Connection], T]) -> T:
        return self._do(work)

    def begin(self) -> None:
        self._do(lambda connection: run(connection, Request("BEGIN IMMEDIATE")))

    def commit(self) -> None:
        if self.in_transaction:
            self._do(lambda connection: run(connection, Request("COMMIT")))

    def rollback(self) -> None:
        if self.in_transaction:
            self._do(lambda connection: run(connection, Request("ROLLBACK")))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            with self._turn.lock:
                self._db.close()

    def _do(self, work: Callable[[apsw.Connection], T]) -> T:
        if self._closed:
            raise errors.ProgrammingError("Cannot operate on a closed database.")
        with self._turn.lock:  # no fork in the middle of it
            if self._db.rests:  # one has closed it
                self._db = self._opened()
            return work(self._db.connection)
