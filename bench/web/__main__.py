"""Measure what the edge costs a request: python -m bench.web [--store sqlite] [--seconds 5] [--tiny].

A POST with an idempotency key that writes its row, a job and an event in one commit, beside the same endpoint writing only its
row: one client after the other, and 20 at once. And each middleware alone around an endpoint that does nothing. The app is called
without a server between, which would make both slower and the ratio kinder.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.schema import noise
from bench.servers import Servers, real_disk
from bench.web.shop import Ask, apps, asking, layers
from holdfast import Holdfast

_ROUNDS = 5
_CLIENTS = (1, 20)
_TURN = 50  # requests of one layer before the next has its turn
_MUST = {"rate": 0.4, "p99": 2.0}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.web", description=__doc__)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="for each endpoint, store and number of clients"
    )
    parser.add_argument("--tiny", action="store_true", help="only to see that it works")
    options = parser.parse_args(arguments)
    console = Console()
    console.print(f"Other programs keep {noise.busy_cores(1.0):.1f} cores busy.")
    seconds = 0.2 if options.tiny else options.seconds
    with tempfile.TemporaryDirectory(dir=real_disk()) as folder, Servers() as servers:
        for store in options.store or ["sqlite", "postgres"]:
            asyncio.run(measure(console, store, servers.fresh(store, Path(folder)), seconds))
    return 0


async def measure(console: Console, store: str, url: str, seconds: float) -> None:
    hf = Holdfast(url)
    found = {name: asking(app) for name, app in apps(hf).items()}
    alone = {name: asking(app) for name, app in layers(hf).items()}
    await hf.migrate()
    async with hf:
        async with hf.transaction() as tx:
            await tx.execute("CREATE TABLE orders (id INTEGER)")
        for clients in _CLIENTS:
            await beside(console, store, found, clients, seconds)
        await each_alone(console, store, alone, seconds)


async def beside(console: Console, store: str, found: dict[str, Ask], clients: int, seconds: float) -> None:
    """In turns: other programs disturb both alike."""
    times: dict[str, list[float]] = {name: [] for name in found}
    spent = dict.fromkeys(found, 0.0)
    for turn in range(_ROUNDS + 1):
        for name, ask in found.items():
            began = time.perf_counter()
            took = await asked(ask, clients, seconds / _ROUNDS)
            if turn:  # the first warms up
                times[name] += took
                spent[name] += time.perf_counter() - began
    table = Table(
        "endpoint", "requests/s", "ratio", "p50 ms", "p99 ms", "times", title=f"{store}, {clients} at once"
    )
    rates = {name: len(times[name]) / spent[name] for name in found}
    tails = {name: at(times[name], 0.99) for name in found}
    row = next(iter(found))
    for name in found:
        table.add_row(
            name, f"{rates[name]:,.0f}", f"{rates[name] / rates[row]:.2f}",
            f"{at(times[name], 0.5):.2f}", f"{tails[name]:.2f}", f"{tails[name] / tails[row]:.2f}",
        )  # fmt: skip
    console.print(table)
    whole = list(found)[-1]
    rate, tail = rates[whole] / rates[row], tails[whole] / tails[row]
    console.print(
        f"rate ≥ {_MUST['rate']}: {rate:.2f}, {'yes' if rate >= _MUST['rate'] else 'NO'}", highlight=False
    )
    console.print(
        f"p99 ≤ {_MUST['p99']:g} times: {tail:.2f}, {'yes' if tail <= _MUST['p99'] else 'NO'}",
        highlight=False,
    )


async def asked(ask: Ask, clients: int, seconds: float) -> list[float]:
    """How long each request took, in ms."""
    took: list[float] = []
    end = time.perf_counter() + seconds

    async def client() -> None:
        while (began := time.perf_counter()) < end:
            await ask()
            took.append((time.perf_counter() - began) * 1e3)

    await asyncio.gather(*(client() for _ in range(clients)))
    return took


async def each_alone(console: Console, store: str, alone: dict[str, Ask], seconds: float) -> None:
    """What each adds to the median of the bare one, in µs."""
    times: dict[str, list[float]] = {name: [] for name in alone}
    end = time.perf_counter() + 2 * seconds
    while time.perf_counter() < end:
        for name, ask in alone.items():
            for _ in range(_TURN):
                began = time.perf_counter()
                await ask()
                times[name].append((time.perf_counter() - began) * 1e6)
    middle = {name: statistics.median(each[_TURN:] or each) for name, each in times.items()}
    table = Table("middleware", "µs", "adds µs", title=f"{store}, each alone")
    for name, value in middle.items():
        table.add_row(name, f"{value:,.0f}", "" if name == "bare" else f"{value - middle['bare']:,.0f}")
    console.print(table)


def at(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


if __name__ == "__main__":
    sys.exit(main())
