"""Where a phase happens: an empty store, the folder of its journals, and the way that its processes take to the store."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from chaos import settings
from chaos.elsewhere import Elsewhere
from holdfast import Holdfast
from tools.postgres import PostgresServer

STORES = ("sqlite", "postgres")


class Place:
    """`url` is the harness's own way, `way` that of workers and callers: a fault may stand in it."""

    def __init__(self, store: str, folder: Path, url: str, server: PostgresServer | None) -> None:
        self.store, self.folder, self.url, self.server = store, folder, url, server
        self.way, self.broker = url, ""  # the URL of what carries events, when that is not the store itself
        self.hf = Holdfast(url)
        self.there = Elsewhere(settings.second_database(folder))

    @property
    def its_server(self) -> PostgresServer:
        assert self.server is not None, "this fault is one of PostgreSQL"
        return self.server


@asynccontextmanager
async def place(store: str, server: PostgresServer | None, disk: Path | None = None) -> AsyncIterator[Place]:
    """`disk` is another folder for the SQLite file alone."""
    with tempfile.TemporaryDirectory(prefix="holdfast-chaos-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        url = await asyncio.to_thread(_url, store, server, disk or folder)
        made = Place(store, folder, url, server)
        made.there.prepare()
        await made.hf.migrate()
        async with made.hf:
            async with made.hf.transaction() as tx:
                for table in settings.TABLES:
                    await tx.execute(table)
            yield made
        made.there.close()


def _url(store: str, server: PostgresServer | None, folder: Path) -> str:
    if store == "sqlite":
        return f"sqlite:///{folder / 'store.db'}"
    assert server is not None
    return server.url(server.create_database())
