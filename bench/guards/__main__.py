"""Measure what a guard adds to a call, beside the libraries that do parts of it: python -m bench.guards [--tiny] [--results FOLDER].

Part of `make bench`, and by itself in two minutes. Figures go to bench/results/guards.json, with a picture, and into
docs/benchmarks.md, where all others stay as they are. A tiny run writes into .bench/trial instead.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import environments, page, report, step
from bench.environments import BENCH, ROOT
from bench.guards import figures as taken
from bench.guards.systems import OURS, PEERS
from bench.musts import guard_musts
from bench.schema import noise
from bench.schema import report as file
from bench.schema.model import Figure
from bench.servers import Servers

FILE, PICTURE = "guards.json", "guards.png"
_ROUNDS = 3
_WHOLE, _TINY = {"calls": 500, "laps": 20}, {"calls": 20, "laps": 1}
_QUIET = 0.3  # cores that others may use


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.guards", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="only to see that it works")
    parser.add_argument("--results", help="a folder")
    options = parser.parse_args(arguments)
    console, is_trial = Console(), options.tiny or options.results
    results = Path(options.results or (BENCH / "trial" if options.tiny else ROOT / "bench" / "results"))
    if (busy := noise.busy_cores(1.0)) > _QUIET:
        console.print(f"Other programs keep {busy:.1f} cores busy: trust the ratios only.", style="yellow")
    found = measure(console, results, tiny=options.tiny)
    show(console, found)
    written = page.write(results if is_trial else ROOT / "docs", results)
    console.print(f"Written: {results / FILE}, {written}")
    return 0


def measure(console: Console, results: Path, *, tiny: bool = False) -> list[Figure]:
    """In turns, ours before and after the others; written beside the other results, with a picture."""
    answers = taken.Answers()
    load = round(os.getloadavg()[0], 2)
    with Servers() as servers:
        for system in (*(1 if tiny else _ROUNDS) * (OURS, *PEERS), OURS):
            try:
                answers.add(system, step.measure(servers, system, "guards", dict(_TINY if tiny else _WHOLE)))
            except step.Failed as error:
                console.print(
                    f"{system.name}: left out, {error}", style="yellow", highlight=False, markup=False
                )
    versions = {each.package: environments.version("guards", each.package or "") for each in PEERS}
    found = answers.figures(versions, load)
    file.write(results / FILE, found)
    _draw(console, results)
    return found


def _draw(console: Console, results: Path) -> None:
    try:
        interpreter = environments.make("picture")
        step.run_quietly(
            [str(interpreter), "-m", "bench.picture", str(results / FILE), str(results / PICTURE)]
        )
    except (environments.NotInstalled, OSError, step.subprocess.SubprocessError) as error:
        console.print(f"No picture: {error}", style="yellow", highlight=False, markup=False)


def show(console: Console, found: Sequence[Figure]) -> None:
    table = Table("measure", "system", "adds", "holdfast is", title="What a guard adds to a call")
    for measure_, _, system, figure, times in report.rows(found):
        table.add_row(
            report.MEASURES[measure_], system, figure, times, style="bold" if system == "holdfast" else ""
        )
    console.print(table)
    for must in guard_musts(found):
        console.print(f"{must.what}: {report.reached(must)}, {report.verdict(must)}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
