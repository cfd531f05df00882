"""Measure the verbs beside the raw limit: python -m bench.verbs [--store S] [--repeats N]."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import track

from bench.schema import report
from bench.schema.model import Bench, Figure, Speed, Work
from bench.schema.pg_bench import PgBench
from bench.schema.sqlite_bench import SqliteBench
from bench.verbs import snapshot
from bench.verbs.drain import drain, fill
from tools.postgres import durable_server

RESULTS = Path(__file__).parents[1] / "results" / "verbs.json"
QUEUED = {10: 20_000, 100: 60_000, 500: 100_000}
CELLS = [(batch, procs) for batch in QUEUED for procs in (1, 2)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verbs", description=__doc__)
    parser.add_argument("--store", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    console = Console()
    for store in options.store or ["sqlite", "postgres"]:
        with _opened(store) as (bench, fresh):
            figures = list(_measure(bench, fresh, options.repeats, console))
            if store == "postgres":
                with console.status("postgres: a snapshot is held"):
                    figures += snapshot.measure(iter(fresh, None))
        report.write(RESULTS, report.merge(report.read(RESULTS), figures))
        console.print(report.markdown(figures), soft_wrap=True, highlight=False)


@contextmanager
def _opened(store: str) -> Iterator[tuple[Bench, Callable[[], str]]]:
    """The bench of the raw limit, and a function that gives the URL of an empty database."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory(prefix="verbs-bench-") as folder, closing(SqliteBench()) as bench:
            yield bench, lambda: f"sqlite:///{tempfile.mkdtemp(dir=folder)}/jobs.db"
    else:
        with durable_server() as server:
            yield PgBench(server.url()), lambda: server.url(server.create_database())


def _measure(bench: Bench, fresh: Callable[[], str], repeats: int, console: Console) -> Iterator[Figure]:
    for batch, procs in track(
        CELLS, description=f"{bench.store}: finish and claim", console=console, transient=True
    ):
        limit, ours = [], []
        for _ in range(repeats):  # in turns: a slow minute of the machine hits both
            limit.append(_limit(bench, batch, procs))
            ours.append(_ours(fresh(), batch, procs))
        for system, speeds in (("limit", limit), ("holdfast", ours)):
            yield _figure(bench.store, system, speeds, batch, procs, _ratio(ours, limit))


def _limit(bench: Bench, batch: int, procs: int) -> Speed:
    bench.create("limit", "limit")
    bench.fill("limit", QUEUED[batch])
    (speed,) = bench.drain("limit", Work(batch, procs))
    bench.drop("limit")
    return speed


def _ours(url: str, batch: int, procs: int) -> Speed:
    fill(url, QUEUED[batch])
    return drain(url, batch, procs)


def _ratio(ours: list[Speed], limit: list[Speed]) -> float:
    return round(median(own.rate / raw.rate for own, raw in zip(ours, limit, strict=True)), 2)


def _figure(store: str, system: str, speeds: list[Speed], batch: int, procs: int, ratio: float) -> Figure:
    config: dict[str, object] = {"batch": batch, "procs": procs, "queued": QUEUED[batch]}
    if system == "holdfast":
        config["of_limit"] = ratio
    return Figure(system, store, "finish_claim", round(median(speed.rate for speed in speeds)), config=config)


if __name__ == "__main__":
    main()
