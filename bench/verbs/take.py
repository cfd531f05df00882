"""How often a second quota can be taken from a store: python -m bench.verbs.take [--seconds N]."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from time import perf_counter

from holdfast.store.ports import Store
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.quota import Want
from holdfast.store.sqlite.store import SqliteStore
from tools.postgres import durable_server

CELLS = [(1, 1), (16, 1), (16, 16)]  # callers, keys


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verbs.take", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="take-bench-") as folder:
        asyncio.run(measure("sqlite", SqliteStore(f"{folder}/a.db"), seconds))
    with durable_server() as server:
        asyncio.run(measure("postgres", PostgresStore(server.url(server.create_database())), seconds))


async def measure(name: str, store: Store, seconds: float) -> None:
    await store.migrate()
    await store.open()
    try:
        for callers, keys in CELLS:
            rate = await takes(store, callers, keys, seconds)
            print(f"{name}: {callers} callers on {keys} keys: {rate:,.0f} takes a second")
    finally:
        await store.close()


async def takes(store: Store, callers: int, keys: int, seconds: float) -> float:
    """Each caller waits for its own commit before it asks again."""
    wants = [Want("api", f"k{number}", 1, 10, 1e6, 1e6) for number in range(keys)]
    start, done = perf_counter(), 0

    async def ask(number: int) -> None:
        nonlocal done
        while perf_counter() - start < seconds:
            await store.guards.take([wants[number % keys]])
            done += 1

    await asyncio.gather(*(ask(number) for number in range(callers)))
    return done / (perf_counter() - start)


if __name__ == "__main__":
    main()
