"""Show where the CPU time of a job goes: python -m bench.profile [--jobs N] [--store S] [--lines].

CPU time is counted, not time on the clock: beside other programs it grows by up to a fifth, and the shares stay.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import page
from bench.environments import ROOT
from bench.place import arguments
from bench.profile.parts import ORDER, SERVER
from bench.schema import report as file
from bench.schema.model import Figure
from bench.servers import Servers
from holdfast import Holdfast

RESULTS = ROOT / "bench" / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--lines", action="store_true", help="also name the lines that cost most")
    options = parser.parse_args()
    console = Console()
    figures: list[Figure] = []
    with Servers() as servers:
        for store in options.store or ["postgres", "sqlite"]:
            with console.status(f"{store}: draining {options.jobs:,} jobs"):
                parts, lines = profile(servers, store, options.jobs)
            figures += [
                Figure(
                    "holdfast",
                    store,
                    "profile",
                    round(parts[part], 2),
                    "us/job",
                    {"part": part, "jobs": options.jobs},
                )
                for part in ORDER
                if part in parts
            ]
            if options.lines:
                console.print(f"{store}\n{lines}", highlight=False, markup=False)
    file.write(RESULTS / "profile.json", file.merge(file.read(RESULTS / "profile.json"), figures))
    page.write(ROOT / "docs", RESULTS)
    _print(console, figures)


def profile(servers: Servers, store: str, jobs: int) -> tuple[dict[str, float], str]:
    """µs of CPU for each job, by part."""
    place = Path(tempfile.mkdtemp(dir=servers.folder))
    url = servers.fresh(store, place)
    asyncio.run(_fill(url, jobs))
    before = servers.server_cpu(store)
    said = subprocess.run(
        [sys.executable, "-m", "bench.profile.worker", str(jobs)],
        cwd=ROOT,
        env=os.environ | {"BENCH_URL": url, "BENCH_FOLDER": str(place)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    parts: dict[str, float] = json.loads((place / "answer").read_text())
    if store == "postgres":
        parts[SERVER] = servers.server_cpu(store) - before
    return {part: 1e6 * seconds / jobs for part, seconds in parts.items()}, said


async def _fill(url: str, jobs: int) -> None:
    hf = Holdfast(url)

    @hf.task(name="noop")
    async def noop(number: int, sent: int, nap: float, pad: str, tail: str) -> None: ...

    await hf.migrate()
    async with hf:
        for start in range(0, jobs, 10_000):
            await noop.enqueue_many([arguments(number) for number in range(start, min(start + 10_000, jobs))])


def _print(console: Console, figures: list[Figure]) -> None:
    table = Table("part", "store", "µs of CPU for each job")
    for figure in figures:
        table.add_row(str(figure.config["part"]), figure.store, f"{figure.rate:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
