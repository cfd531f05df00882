"""Measure events beside FastStream and the raw clients: python -m bench.events [--tiny] [--measure M] [--results FOLDER].

Figures go to bench/results/events.json, with a picture, and into docs/benchmarks.md, where all others stay as they are. A tiny
run writes into .bench/trial instead. `--measure` measures a part; the figures of other parts stay.
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
from bench.events import figures as taken
from bench.events.systems import CALLERS, MEASURES
from bench.musts import event_musts
from bench.schema import noise
from bench.schema import report as file
from bench.schema.model import Figure
from bench.servers import Servers
from bench.systems import System

FILE, PICTURE = "events.json", "events.png"
_ROUNDS = 3
_ONCE = {"event_latency", "relay_memory"}  # they take many samples by themselves
_LONG = 600.0  # seconds that a measurement may take
_QUIET = 0.3  # cores that others may use
_WHOLE = {"callers": CALLERS, "events": 2.5, "emit": 1.5, "samples": 300, "backlog": 1_000_000}
_TINY = {"callers": CALLERS, "events": 0.1, "emit": 0.2, "samples": 10, "backlog": 5_000}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.events", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="only to see that it works")
    parser.add_argument("--measure", action="append", default=[], choices=MEASURES)
    parser.add_argument("--results", help="a folder")
    options = parser.parse_args(arguments)
    console, is_trial = Console(), options.tiny or options.results
    results = Path(options.results or (BENCH / "trial" if options.tiny else ROOT / "bench" / "results"))
    if (busy := noise.busy_cores(1.0)) > _QUIET:
        console.print(f"Other programs keep {busy:.1f} cores busy: trust the ratios only.", style="yellow")
    found = measure(console, results, options.measure or list(MEASURES), tiny=options.tiny)
    show(console, found)
    written = page.write(results if is_trial else ROOT / "docs", results)
    console.print(f"Written: {results / FILE}, {written}")
    return 0


def measure(console: Console, results: Path, measures: Sequence[str], *, tiny: bool = False) -> list[Figure]:
    """In turns; written beside the other results, with a picture. Each part is kept as soon as it is measured."""
    found = file.read(results / FILE)
    with Servers() as servers:
        for what in measures:
            load = round(os.getloadavg()[0], 2)
            answers = _measured(console, servers, what, tiny=tiny)
            found = file.merge(found, answers.figures(_versions(), load))
            file.write(results / FILE, found)
    _draw(console, results)
    return found


def _measured(console: Console, servers: Servers, what: str, *, tiny: bool) -> taken.Answers:
    answers, rates = taken.Answers(), dict[System, float]()
    for system in MEASURES[what] * (1 if tiny or what in _ONCE else _ROUNDS):
        options = _options(what, system, tiny=tiny) | {"guess": rates.get(system, system.guess)}
        try:
            answer = step.measure(servers, system, what, options, limit=_LONG)
        except step.Failed as error:
            told = f"{system.broker or system.store} {system.name} {what}: left out, {error}"
            console.print(told, style="yellow", highlight=False, markup=False)
            continue
        rates[system] = answer.get("rate", 0.0)
        for figure in answers.add(system, what, answer):
            told = f"{figure.store} {figure.system}: {figure.measure} {figure.rate:,g} {figure.unit}"
            console.print(told, highlight=False)
    return answers


def _options(what: str, system: System, *, tiny: bool) -> dict[str, object]:
    size = _TINY if tiny else _WHOLE
    seconds = size["events" if what.startswith("events") else "emit"]
    processes = 1 if system.store == "sqlite" else 2
    return {**size, "seconds": seconds, "processes": processes}


def _versions() -> dict[str, str]:
    packages = {each.package for systems in MEASURES.values() for each in systems if each.package}
    return {name: environments.version("events", name) for name in packages}


def _draw(console: Console, results: Path) -> None:
    try:
        interpreter = environments.make("picture")
        step.run_quietly(
            [str(interpreter), "-m", "bench.picture", str(results / FILE), str(results / PICTURE)]
        )
    except (environments.NotInstalled, OSError, step.subprocess.SubprocessError) as error:
        console.print(f"No picture: {error}", style="yellow", highlight=False, markup=False)


def show(console: Console, found: Sequence[Figure]) -> None:
    table = Table("measure", "over", "system", "figure", "holdfast is", title="Events")
    for measure_, store, system, figure, times in report.rows(found):
        style = "bold" if system == "holdfast" else "dim" if system == "limit" else ""
        table.add_row(report.MEASURES[measure_], store, system, figure, times, style=style)
    console.print(table)
    for must in event_musts(found):
        console.print(f"{must.what}: {report.reached(must)}, {report.verdict(must)}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
