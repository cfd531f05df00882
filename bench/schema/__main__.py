"""Measure the table designs: python -m bench.schema [--quick | --full] [--store S] [--measure M ...]."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tools.postgres import durable_server

from . import measures, pg_measures, report, sqlite_measures
from .measures import FULL, QUICK, Figures, Session
from .model import Bench, Figure
from .noise import Patience
from .pg_bench import PgBench
from .sqlite_bench import SqliteBench

RESULTS = Path(__file__).parents[1] / "results" / "schema.json"
Measure = Callable[[Session], Figures]

SHARED: dict[str, Measure] = {
    "finish_claim": measures.rates,
    "enqueue_bulk": measures.enqueues,
    "depth": measures.depth,
    "passed": measures.passed,
    "finished_kept": measures.finished,
    "snapshot_held": measures.snapshots,
}
OWN: dict[str, dict[str, Measure]] = {
    "postgres": {
        "variant": pg_measures.variants,
        "step": pg_measures.steps,
        "renew": pg_measures.renewals,
    },
    "sqlite": {"layout": sqlite_measures.layouts, "finish_form": sqlite_measures.forms},
}


def main() -> None:
    options = parse()
    console = Console()
    figures: list[Figure] = []
    for store in options.store or list(OWN):
        with opened(store) as bench:
            figures += run(bench, options, console)
    console.print(report.markdown(figures), soft_wrap=True, highlight=False)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.schema", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick",
        dest="size",
        action="store_const",
        const=QUICK,
        default=QUICK,
        help="a few minutes (default)",
    )
    size.add_argument(
        "--full",
        dest="size",
        action="store_const",
        const=FULL,
        help="the figures that decide; an hour or more, 10 GB of disk",
    )
    parser.add_argument("--store", action="append", choices=list(OWN))
    parser.add_argument(
        "--measure", action="append", choices=[*SHARED, *(name for own in OWN.values() for name in own)]
    )
    parser.add_argument(
        "--patience", type=float, default=0.0, help="seconds, in all, to wait for other programs to be quiet"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


@contextmanager
def opened(store: str) -> Iterator[Bench]:
    if store == "sqlite":
        with closing(SqliteBench()) as bench:
            yield bench
    else:
        with durable_server() as server:
            yield PgBench(server.url())


def run(bench: Bench, options: argparse.Namespace, console: Console) -> list[Figure]:
    plan = {
        name: measure
        for name, measure in (SHARED | OWN[bench.store]).items()
        if name in (options.measure or [name])
    }
    figures: list[Figure] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(bench.store, total=len(plan))
        for name, measure in plan.items():

            def say(text: str, name: str = name) -> None:
                progress.update(task, description=f"{bench.store} {name}: {text}")

            found = list(measure(Session(bench, options.size, Patience(options.patience), say)))
            # After each measure: an hour of figures should survive a failure in the next one.
            report.write(options.out, report.merge(report.read(options.out), found))
            figures += found
            progress.advance(task)
    return figures


if __name__ == "__main__":
    main()
