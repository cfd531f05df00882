"""How a subject of the store reaches the database: on our own connections, or inside a caller's transaction."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from holdfast.store.postgres.connection import Database
from holdfast.store.postgres.endings import Endings
from holdfast.store.postgres.transaction import Executor
from holdfast.store.postgres.wakeups import Wakeups


class Home(Protocol):
    database: Database
    endings: Endings
    wakeups: Wakeups

    async def adopt(self, tx: object) -> Executor:
        """What runs our verbs in this transaction; raises WrongConnection when it is not one of our database."""

    def hint(self, queues: Collection[str], *, tx: object | None = None) -> None: ...


class Subject:
    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def _database(self) -> Database:
        """That of now: in a forked child it is another, and whoever was given the subject before goes on with it."""
        return self._home.database

    async def _executor(self, tx: object | None) -> Executor | None:
        """None: by itself, which is refused inside a transaction of the same task, where `tx=` was forgotten."""
        if tx is not None:
            return await self._home.adopt(tx)
        self._database.blocks.check_free()
        return None
