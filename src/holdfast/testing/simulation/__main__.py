"""The command line of the simulation: many seeds, one seed again, or the mutants."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from holdfast.kernel.telemetry import silence
from holdfast.testing.simulation import report
from holdfast.testing.simulation.hunt import hunt
from holdfast.testing.simulation.kinds import KINDS, kind_of
from holdfast.testing.simulation.many import run_many, run_one
from holdfast.testing.simulation.mutants import MUTANTS
from holdfast.testing.simulation.shrink import shrink
from holdfast.testing.simulation.simulate import Choices, Result
from holdfast.testing.simulation.sometimes import ENOUGH, missing


def main(words: list[str] | None = None) -> int:
    options = _parse(words)
    if options.mutants:
        seeds = range(options.start, options.start + options.seeds)
        return hunt(seeds, jobs=options.jobs, kind=options.kind, keep=options.write)
    if options.seed is not None:
        return _replay(options)
    return _many(options)


def _parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=report.PROGRAM, description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run (%(default)s)")
    parser.add_argument("--kind", choices=list(KINDS), help="only this kind; without it, all in turn")
    parser.add_argument("--start", type=int, default=0, help="the first of them (%(default)s)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (the number of cores)"
    )
    parser.add_argument("--time-limit", type=float, help="seconds after which no more seeds are begun")
    parser.add_argument("--seed", type=int, help="run this seed again and tell its story")
    parser.add_argument(
        "--without-fault", type=_numbers, default=frozenset(), help="faults to leave out, as 3,5"
    )
    parser.add_argument(
        "--fifo-after", type=int, help="the step from which on the oldest callback runs first"
    )
    parser.add_argument(
        "--shrink", action="store_true", help="with --seed: find the smallest schedule that fails"
    )
    parser.add_argument("--mutant", choices=MUTANTS, metavar="NAME", help="plant this bug first")
    parser.add_argument("--mutants", action="store_true", help="plant every bug in turn; each must be found")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="with --mutants: keep the seeds that found them"
    )
    return parser.parse_args(words)


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(word) for word in text.split(",") if word)


# --- many seeds ---


def _many(options: argparse.Namespace) -> int:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    ran: Counter[str] = Counter()
    seeds = range(options.start, options.start + options.seeds)
    progress = _Progress(options.seeds, options.time_limit)
    kind = options.kind or (options.mutant and MUTANTS[options.mutant].kind)
    for result in progress.watch(run_many(seeds, jobs=options.jobs, kind=kind, mutant=options.mutant)):
        ran[result.kind] += 1
        counts[result.kind].update(result.counts)
        if result.violations:
            progress.end()
            print(_shrunk(result, Choices(), options.mutant))
            return 1
    progress.end()
    print(f"{ran.total()} seeds, no invariant was broken.")
    return max([_gone_through(kind, ran[kind], counts[kind]) for kind in ran], default=0)


def _gone_through(kind: str, ran: int, counts: Counter[str]) -> int:
    print(f"What {ran} seeds of the kind {kind!r} went through:")
    print(report.sometimes(counts, kind))
    if ran >= ENOUGH[kind] and (never := missing(counts, kind)):
        print(f"This never happened in {ran} seeds, so nothing is proved of it: {', '.join(never)}")
        return 1
    return 0


def _shrunk(result: Result, choices: Choices, mutant: str | None) -> str:
    print(report.failure(result, choices, mutant))
    print("Looking for a smaller schedule that breaks the same promise …")
    choices, smallest = shrink(
        result, partial(run_one, result.seed, kind=result.kind, mutant=mutant), choices
    )
    return report.failure(smallest, choices, mutant)


# --- one seed ---


def _replay(options: argparse.Namespace) -> int:
    choices = Choices(options.without_fault, options.fifo_after)
    planted_in = None if options.mutant is None else MUTANTS[options.mutant].kind
    kind = options.kind or planted_in or kind_of(options.seed)
    result = run_one(options.seed, choices, kind=kind, mutant=options.mutant, story=True)
    print("\n".join(result.story))
    again = run_one(options.seed, choices, kind=kind, mutant=options.mutant)
    print(f"Trace {result.trace}, and again {again.trace}.")
    if result.trace != again.trace:
        print("The same seed gave two traces: something in it does not go through the kernel.")
        return 1
    if not result.violations:
        print(f"Seed {options.seed} ({kind}): no invariant was broken.")
        return 0
    tell = _shrunk if options.shrink else report.failure
    print(tell(result, choices, options.mutant))
    return 1


# --- progress ---


class _Progress:
    """A line that is written over on a terminal; with rich, a bar."""

    def __init__(self, total: int, time_limit: float | None) -> None:
        self._total, self._limit = total, time_limit
        self._began = self._told = time.monotonic()
        self._bar = _rich_bar(total) if sys.stderr.isatty() else None

    def watch(self, results: Iterator[Result]) -> Iterator[Result]:
        for number, result in enumerate(results, 1):
            yield result
            self._tell(number)
            if self._limit is not None and time.monotonic() - self._began > self._limit:
                return

    def _tell(self, number: int) -> None:
        now = time.monotonic()
        rate = number / (now - self._began)
        if self._bar is not None:
            self._bar.update(0, completed=number, description=f"{rate:.0f} seeds/s")
        elif now - self._told > 10 or number == self._total:
            self._told = now
            print(f"{number} of {self._total} seeds, {rate:.1f} a second", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _rich_bar(total: int):  # type: ignore[no-untyped-def]  # noqa: ANN202  rich may be missing
    try:
        from rich.progress import Progress  # noqa: PLC0415
    except ImportError:
        return None
    bar = Progress()
    bar.add_task("seeds", total=total)
    bar.start()
    return bar


if __name__ == "__main__":
    silence()
    sys.exit(main())
