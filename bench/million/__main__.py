"""Measure finds and counts beside very many jobs: python -m bench.million [--store S] [--jobs N] [--rounds N]."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.million.crowd import TENANTS, fill
from bench.million.questions import QUESTIONS, Question
from bench.servers import Servers, real_disk
from holdfast import Holdfast

MUST = 10.0  # ms at p99


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.million", description=__doc__)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(dir=real_disk()) as folder, Servers() as servers:
        for store in options.store or ["sqlite", "postgres"]:
            url = servers.fresh(store, Path(folder))
            asyncio.run(measure(console, store, url, options.jobs, options.rounds))


async def measure(console: Console, store: str, url: str, jobs: int, rounds: int) -> None:
    hf = Holdfast(url)
    await hf.migrate()
    async with hf:
        with console.status(f"{store}: {jobs:,} jobs"):
            began = time.perf_counter()
            await fill(hf, jobs)
            filled = time.perf_counter() - began
            began = time.perf_counter()
            await hf.store.jobs.tally()
            tallied = time.perf_counter() - began
        table = Table(
            "question", "p50 ms", "p99 ms", "worst ms",
            title=f"{store}: {jobs:,} jobs of {TENANTS:,} tenants, stored in {filled:.0f} s; a tally takes {tallied:.2f} s",
        )  # fmt: skip
        for name, question in QUESTIONS.items():
            took = await _times(hf, question, rounds)
            p99 = took[int(len(took) * 0.99)]
            table.add_row(
                name,
                f"{took[len(took) // 2]:.1f}",
                f"{p99:.1f}",
                f"{took[-1]:.1f}",
                style="red" if p99 > MUST else "",
            )
        console.print(table)


async def _times(hf: Holdfast, question: Question, rounds: int) -> list[float]:
    """In ms, the shortest first."""
    took = []
    for number in range(rounds + 10):
        began = time.perf_counter()
        await question(hf, number)
        took.append((time.perf_counter() - began) * 1e3)
    return sorted(took[10:])  # the first ones warm up


if __name__ == "__main__":
    main()
