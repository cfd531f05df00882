"""Where a proof runs: a folder, a database, and the way to it that workers take."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tools.local_server import free_port
from tools.postgres import PostgresServer, system_binaries, wheel_binaries
from tools.wire import Wire

_SETTINGS = {"max_connections": "300", "shared_buffers": "128MB"}  # what is committed is on the disk
STORES = ("sqlite", "postgres")


@dataclass
class Place:
    """`url` is the database, `way` how workers get there: over a wire that can be cut."""

    store: str
    folder: Path
    url: str
    is_small: bool
    chance: random.Random
    way: str = ""
    wire: Wire | None = None
    said: list[str] = field(default_factory=list)

    def tell(self, text: str) -> None:
        """One line while it runs."""
        self.said.append(text)
        print(text, flush=True)

    @asynccontextmanager
    async def wired(self) -> AsyncIterator[None]:
        """SQLite has no wire: there the way is the file."""
        if self.store == "sqlite":
            self.way = self.url
            yield
            return
        async with Wire(self.url).open() as self.wire:
            self.way = self.wire.url
            yield


@contextmanager
def database(store: str, folder: Path) -> Iterator[str]:
    """A new one; its URL."""
    if store == "sqlite":
        yield f"sqlite:///{folder / 'proof.db'}"
        return
    server = PostgresServer.start(wheel_binaries() or system_binaries()[-1], _SETTINGS)
    try:
        yield server.url(server.create_database())
    finally:
        server.stop()


def ports(number: int) -> list[int]:
    """Free ones on loopback, each once."""
    found: set[int] = set()
    while len(found) < number:
        found.add(free_port())
    return sorted(found)


def plain_environment() -> dict[str, str]:
    """Ours without what would change how a program behaves."""
    ours = (
        "HOLDFAST_",
        "PUBLISHER_",
        "DEVIANTART_",
        "ADMISSIONS_",
        "STRIPE_",
        "CLAMD_",
        "SMTP_",
        "DATABASE_URL",
        "REDIS_URL",
    )
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
