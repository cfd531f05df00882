"""Measure one subject by itself, in turns; its figures, its picture and its chapter in docs/benchmarks.md are made from that.

A tiny run writes into .bench/trial instead. `--measure` measures a part; the figures of other parts stay.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import environments, page, report, step
from bench.answers import Answers
from bench.environments import BENCH, ROOT
from bench.musts import Must
from bench.schema import noise
from bench.schema import report as file
from bench.schema.model import Figure
from bench.servers import Servers
from bench.systems import System

_QUIET = 0.3  # cores that others may use
_ROUNDS = 3


@dataclass(frozen=True)
class Chapter:
    """What there is to measure, and what the answers mean."""

    name: str  # of its files
    measures: Mapping[str, list[System]]
    once: frozenset[str]  # measures that take many samples by themselves
    limit: float  # seconds that one measurement may take
    options: Callable[[str, System, bool], dict[str, Any]]  # of a measure, and whether the run is tiny
    answers: Callable[[], Answers]
    musts: Callable[[Sequence[Figure]], Iterable[Must]]

    @property
    def file(self) -> str:
        return f"{self.name}.json"

    def versions(self) -> dict[str, str]:
        wanted = {
            (each.environment, each.package)
            for systems in self.measures.values()
            for each in systems
            if each.environment and each.package
        }
        return {package: environments.version(environment, package) for environment, package in wanted}


def main(chapter: Chapter, arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m bench.{chapter.name}", description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="only to see that it works")
    parser.add_argument("--measure", action="append", default=[], choices=chapter.measures)
    parser.add_argument("--results", help="a folder")
    options = parser.parse_args(arguments)
    console, is_trial = Console(), options.tiny or options.results
    results = Path(options.results or (BENCH / "trial" if options.tiny else ROOT / "bench" / "results"))
    if (busy := noise.busy_cores(1.0)) > _QUIET:
        console.print(f"Other programs keep {busy:.1f} cores busy: trust the ratios only.", style="yellow")
    found = measure(chapter, console, results, options.measure or list(chapter.measures), tiny=options.tiny)
    show(chapter, console, found)
    written = page.write(results if is_trial else ROOT / "docs", results)
    console.print(f"Written: {results / chapter.file}, {written}")
    return 0


def measure(
    chapter: Chapter, console: Console, results: Path, measures: Sequence[str], *, tiny: bool = False
) -> list[Figure]:
    """In turns; written beside the other results, with a picture. Each part is kept as soon as it is measured."""
    found = file.read(results / chapter.file)
    with Servers() as servers:
        for what in measures:
            load = round(os.getloadavg()[0], 2)
            answers = _measured(chapter, console, servers, what, tiny=tiny)
            found = file.merge(found, answers.figures(chapter.versions(), load))
            file.write(results / chapter.file, found)
    draw(chapter, console, results)
    return found


def _measured(chapter: Chapter, console: Console, servers: Servers, what: str, *, tiny: bool) -> Answers:
    answers, rates = chapter.answers(), dict[System, float]()
    for system in chapter.measures[what] * (1 if tiny or what in chapter.once else _ROUNDS):
        options = chapter.options(what, system, tiny) | {"guess": rates.get(system, system.guess)}
        try:
            answer = step.measure(servers, system, what, options, limit=chapter.limit)
        except step.Failed as error:
            told = f"{system.broker or system.store} {system.name} {what}: left out, {error}"
            console.print(told, style="yellow", highlight=False, markup=False)
            continue
        rates[system] = answer.get("rate", 0.0)
        for figure in answers.add(system, what, answer):
            told = f"{figure.store} {figure.system}: {figure.measure} {figure.rate:,g} {figure.unit}"
            console.print(told, highlight=False)
    return answers


def draw(chapter: Chapter, console: Console, results: Path) -> None:
    try:
        interpreter = environments.make("picture")
        picture = results / f"{chapter.name}.png"
        step.run_quietly([str(interpreter), "-m", "bench.picture", str(results / chapter.file), str(picture)])
    except (environments.NotInstalled, OSError, step.subprocess.SubprocessError) as error:
        console.print(f"No picture: {error}", style="yellow", highlight=False, markup=False)


def show(chapter: Chapter, console: Console, found: Sequence[Figure]) -> None:
    table = Table("measure", "over", "system", "figure", "holdfast is", title=chapter.name.capitalize())
    for measure_, store, system, figure, times in report.rows(found):
        style = "bold" if system == "holdfast" else "dim" if system == "limit" else ""
        table.add_row(report.MEASURES[measure_], store, system, figure, times, style=style)
    console.print(table)
    for must in chapter.musts(found):
        console.print(f"{must.what}: {report.reached(must)}, {report.verdict(must)}", highlight=False)
