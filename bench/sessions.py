"""What SQLAlchemy adds to a transaction: python -m bench.sessions [--store sqlite] [--rounds 200].

Each round is one insert and its commit, relative to `hf.transaction()`; and on SQLite, how long a commit takes beside tasks that
enqueue without pause: through the writer's queue, and on a connection that has to win the lock.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from rich.console import Console
from rich.table import Table
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from bench.servers import Servers, real_disk
from holdfast import Holdfast
from holdfast.runtime.inside import inside
from holdfast.sqlalchemy.sqlite import url_of_file

BUSY_TASKS = 20
IN_TURN = 20


class Base(DeclarativeBase):
    pass


class Thing(Base):
    __tablename__ = "things"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sessions", description=__doc__)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(dir=real_disk()) as folder, Servers() as servers:
        for store in options.store or ["sqlite", "postgres"]:
            url = servers.fresh(store, Path(folder))
            asyncio.run(compare(console, store, url, options.rounds))
            if store == "sqlite":
                asyncio.run(beside_others(console, url, options.rounds))


async def compare(console: Console, store: str, url: str, rounds: int) -> None:
    hf = Holdfast(url)
    await hf.migrate()
    async with hf:
        async with hf.sqlalchemy().begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        ways = {"hf.transaction()": by_transaction, "hf.session()": by_session, "hf.sqlalchemy()": by_engine}
        table = Table("one insert and commit", "wall ms", "ratio", "CPU ms", "ratio", title=store)
        figures = await measured({name: partial(way, hf) for name, way in ways.items()}, rounds)
        first_wall, first_cpu = figures["hf.transaction()"]
        for name, (wall, cpu) in figures.items():
            table.add_row(
                name, f"{wall:.2f}", f"{wall / first_wall:.1f}", f"{cpu:.2f}", f"{cpu / first_cpu:.1f}"
            )
        console.print(table)


async def measured(
    calls: dict[str, Callable[[], Awaitable[None]]], rounds: int
) -> dict[str, tuple[float, float]]:
    """Median of the wall time and mean of the CPU time of each, in ms. In turns: other programs disturb all alike."""
    walls: dict[str, list[float]] = {name: [] for name in calls}
    cpu = dict.fromkeys(calls, 0.0)
    for number in range(rounds // IN_TURN + 1):
        for name, call in calls.items():
            before = time.process_time()
            for _ in range(IN_TURN):
                began = time.perf_counter()
                await call()
                if number:  # the first turn warms up
                    walls[name].append(time.perf_counter() - began)
            cpu[name] += (time.process_time() - before) if number else 0.0
    return {
        name: (statistics.median(each) * 1e3, cpu[name] / len(each) * 1e3) for name, each in walls.items()
    }


async def by_transaction(hf: Holdfast) -> None:
    async with hf.transaction() as tx:
        await tx.execute("INSERT INTO things (name) VALUES ($1)", "a")


async def by_session(hf: Holdfast) -> None:
    async with hf.session() as session:
        session.add(Thing(name="a"))
        await session.commit()


async def by_engine(hf: Holdfast) -> None:
    async with hf.sqlalchemy().begin() as connection:
        await connection.execute(sa.insert(Thing).values(name="a"))


async def beside_others(console: Console, url: str, rounds: int) -> None:
    hf = Holdfast(url)

    @hf.task(name="bench.nothing")
    async def nothing() -> None: ...

    async def busy() -> None:
        while True:
            await nothing.enqueue()

    async with hf:
        tasks = [asyncio.create_task(busy()) for _ in range(BUSY_TASKS)]
        own = sa.create_engine(url_of_file(inside(hf).location.address))
        table = Table(
            f"a commit beside {BUSY_TASKS} tasks that enqueue", "p50 ms", "p99 ms", "max ms", title="sqlite"
        )
        for name, engine in {"through the writer": hf.blocking.sqlalchemy(), "own connection": own}.items():
            times = await asyncio.to_thread(commits, engine, rounds)
            table.add_row(
                name, *(f"{times[int(len(times) * part)]:.1f}" for part in (0.5, 0.99)), f"{times[-1]:.1f}"
            )
        own.dispose()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        console.print(table)


def commits(engine: Any, rounds: int) -> list[float]:
    """How long each took, in ms, the shortest first."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        with engine.begin() as connection:
            connection.execute(sa.insert(Thing).values(name="a"))
        times.append((time.perf_counter() - began) * 1e3)
        threading.Event().wait(0.002)
    return sorted(times)


if __name__ == "__main__":
    main()
