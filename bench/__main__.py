"""Measure Holdfast beside its peers, in one run: python -m bench [--full | --tiny] [--system S] [--store S] [--measure M].

Everything it needs it sets up itself, under .bench, and it stops what it starts. Figures go to bench/results/peers.json, the
picture beside them, and both into docs/benchmarks.md. A run of a part, or a tiny one, writes into .bench/trial instead,
or into the folder given with --results.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import chapter, environments, page, report, step
from bench.environments import BENCH, ROOT
from bench.events.__main__ import EVENTS
from bench.figures import Figures
from bench.guards import __main__ as guards
from bench.musts import musts
from bench.plan import FULL, MEASURES, QUICK, TINY, Choice, Size, Step, steps
from bench.sagas.__main__ import SAGAS
from bench.schema import noise
from bench.schema import report as file
from bench.schema.model import Figure
from bench.servers import Servers
from bench.systems import HOLDFAST, PEERS

_QUIET = 0.3  # cores that others may use
_SOME_EVENTS = ["events", "event_latency"]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    size = TINY if options.tiny else FULL if options.full else QUICK
    choice = Choice(frozenset(options.system), frozenset(options.store), frozenset(options.measure))
    whole = not options.tiny and not options.results and choice == Choice()
    results = (
        Path(options.results) if options.results else ROOT / "bench" / "results" if whole else BENCH / "trial"
    )
    console = Console()
    _warn_of_noise(console)
    if whole:
        guards.show(console, guards.measure(console, results))
        _chapters(console, results, full=options.full)
    figures, left_out = Run(console, size, options.minutes or size.minutes).measure(list(steps(size, choice)))
    if not figures:
        console.print("Nothing was measured.")
        return 1
    _write(console, results, figures, left_out, whole=whole)
    return 0


def _chapters(console: Console, results: Path, *, full: bool) -> None:
    """Events as far as they do not take long; with `full` all of them, and sagas."""
    measured = [(EVENTS, list(EVENTS.measures)), (SAGAS, list(SAGAS.measures))]
    for subject, measures in measured if full else [(EVENTS, _SOME_EVENTS)]:
        chapter.show(subject, console, chapter.measure(subject, console, results, measures))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--full", action="store_true", default=os.environ.get("FULL", "") not in ("", "0"),
                        help="longer, three rounds, recovery, Redis with fsync, all of events, and sagas (also FULL=1)")  # fmt: skip
    parser.add_argument(
        "--tiny", action="store_true", help="only to see that it works: the figures mean nothing"
    )
    parser.add_argument("--system", action="append", default=[], choices=_names())
    parser.add_argument("--store", action="append", default=[], choices=FULL.stores)
    parser.add_argument("--measure", action="append", default=[], choices=MEASURES)
    parser.add_argument("--minutes", type=float, help="begin nothing new after this time")
    parser.add_argument("--results", help="a folder")
    return parser.parse_args(arguments)


def _names() -> list[str]:
    return sorted({"limit", *(system.name for system in (*HOLDFAST, *PEERS))})


def _warn_of_noise(console: Console) -> None:
    if (busy := noise.busy_cores(1.0)) > _QUIET:
        console.print(
            f"Other programs keep {busy:.1f} cores busy: do not trust the figures of this run.",
            style="yellow",
        )


class Run:
    """All steps, one after the other. What fails is named, and the rest goes on."""

    def __init__(self, console: Console, size: Size, minutes: float) -> None:
        self._console, self._size, self._until = console, size, time.monotonic() + 60 * minutes
        self._figures = Figures()
        self._left_out: dict[str, str] = {}
        self._guesses: dict[tuple[str, str], float] = {}

    def measure(self, plan: Sequence[Step]) -> tuple[list[Figure], dict[str, str]]:
        progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=self._console, transient=True,
        )  # fmt: skip
        with Servers() as servers, progress:
            bar = progress.add_task("", total=len(plan))
            for each in plan:
                progress.update(bar, description=_label(each))
                self._step(servers, each)
                progress.advance(bar)
        return self._figures.all(self._versions(plan)), self._left_out

    def _step(self, servers: Servers, each: Step) -> None:
        system, label = each.system, _label(each)
        if time.monotonic() > self._until:
            self._left_out[label] = "no time was left"
            return
        options = self._size.options(system, each.measure)
        options["guess"] = self._guesses.get(system.key, system.guess)
        try:
            answer = step.measure(servers, system, each.measure, options)
        except step.Failed as error:
            self._left_out[label] = str(error)
            self._console.print(f"{label}: left out, {error}", style="yellow", highlight=False, markup=False)
            return
        if each.measure == "drain":
            self._guesses[system.key] = answer["rate"]
        found = self._figures.add(system, each.measure, answer)
        told = ", ".join(f"{figure.measure} {figure.rate:,g} {figure.unit}" for figure in found)
        self._console.print(f"{system.store} {system.name}: {told}", highlight=False)

    def _versions(self, plan: Sequence[Step]) -> dict[str, str]:
        packages = {(each.system.environment, each.system.package) for each in plan}
        return {name: environments.version(there, name) for there, name in packages if there and name}


def _label(each: Step) -> str:
    return f"{each.system.store} {each.system.name} {each.measure}"


def _write(
    console: Console, results: Path, figures: list[Figure], left_out: dict[str, str], *, whole: bool
) -> None:
    results.mkdir(parents=True, exist_ok=True)
    file.write(results / "peers.json", figures)
    (results / page.LEFT_OUT).write_text("".join(f"{label}: {why}\n" for label, why in left_out.items()))
    picture = _draw(console, results)
    written = page.write(ROOT / "docs" if whole else results, results)
    _print(console, figures, left_out)
    console.print(f"Written: {results / 'peers.json'}, {written}" + (f", {picture}" if picture else ""))


def _draw(console: Console, results: Path) -> Path | None:
    try:
        interpreter = environments.make("picture")
    except environments.NotInstalled as error:
        console.print(f"No picture: matplotlib cannot be installed: {error}", style="yellow")
        return None
    picture = results / "peers.png"
    try:
        step.run_quietly([str(interpreter), "-m", "bench.picture", str(results / "peers.json"), str(picture)])
    except subprocess.SubprocessError as error:
        console.print(f"No picture: {error}", style="yellow", highlight=False, markup=False)
        return None
    return picture


def _print(console: Console, figures: list[Figure], left_out: dict[str, str]) -> None:
    table = Table("measure", "store", "system", "figure", "holdfast is", title="Holdfast beside its peers")
    for row in report.rows(figures):
        table.add_row(*row, style="bold" if row[2] == "holdfast" else "dim" if row[2] == "limit" else "")
    console.print(table)
    table = Table("must", "reached", "holds", title="What must be reached")
    for must in musts(figures):
        table.add_row(
            must.what, report.reached(must), report.verdict(must), style="red" if must.holds is False else ""
        )
    console.print(table)
    for label, why in left_out.items():
        console.print(f"Left out: {label}: {why}", style="yellow", highlight=False, markup=False)


if __name__ == "__main__":
    sys.exit(main())
