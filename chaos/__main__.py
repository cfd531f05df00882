"""Hurt Holdfast and count: python -m chaos [PHASE ...] [--short] [--store S].

Real workers, supervisors, a scheduler and callers on real PostgreSQL and SQLite, under load, while one fault after the other is
injected. After each the databases, the callers' journals and the provider are compared. The exit code is 1 when anything
acknowledged is lost, done twice, there though it was rolled back, or late. Everything is on loopback, and what it starts it
ends. Both stores are hurt at the same time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from chaos import phase as phases
from chaos import report, small_disk
from chaos.faults.disks import SMALL
from chaos.phase import Phase, Row
from chaos.place import STORES
from chaos.plan import SHORT, WHOLE, Plan
from tools.postgres import PostgresServer, system_binaries, wheel_binaries

_ROOT = Path(__file__).parents[1]
_PAGE = _ROOT / "docs" / "chaos.md"
_SETTINGS = {"max_connections": "400"}  # all else as installed: what is committed is on the disk


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    plan = (SHORT if options.short else WHOLE).only(options.phase).each(options.count)
    whole = not (options.short or options.phase or options.store or options.count)
    results = Path(options.results) if options.results else _ROOT / ".chaos"
    signal.signal(signal.SIGTERM, _interrupt)
    console = Console(width=None if sys.stdout.isatty() else 200)
    try:
        rows = asyncio.run(Run(console, plan, options.store or STORES, options.seed).all())
    except KeyboardInterrupt:
        console.print("Interrupted. All processes have been ended.")
        return 130
    return _told(console, rows, results, _PAGE if whole else None)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    keys = [phase.key for phase in WHOLE.phases]
    parser.add_argument("phase", nargs="*", default=[], help=f"only these: {', '.join(keys)}")
    parser.add_argument("--short", action="store_true", help="a few of each, in less than a minute")
    parser.add_argument("--store", action="append", choices=STORES, default=None)
    parser.add_argument(
        "--seed", type=int, default=1, help="for the moments of chance; processes add their own"
    )
    parser.add_argument("--count", type=int, help="so many injections in each phase")
    parser.add_argument("--results", help="a folder")
    options = parser.parse_args(arguments)
    if unknown := set(options.phase) - set(keys):
        parser.error(f"no such phase: {', '.join(sorted(unknown))}")
    return options


def _interrupt(*_: object) -> None:
    """As Ctrl-C, which asyncio turns into a cancellation: nothing is cut off while it starts a process."""
    signal.raise_signal(signal.SIGINT)


class Run:
    """The stores beside each other, the phases of each one after the other."""

    def __init__(self, console: Console, plan: Plan, stores: Sequence[str], seed: int) -> None:
        self._console, self._plan, self._stores, self._seed = console, plan, stores, seed
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=console, transient=True,
        )  # fmt: skip

    async def all(self) -> list[Row]:
        with ExitStack() as stack:
            server = None
            if "postgres" in self._stores:
                server = await asyncio.to_thread(_start_server)
                stack.callback(server.stop)
            stack.enter_context(self._progress)
            async with asyncio.TaskGroup() as group:
                tracks = [group.create_task(self._track(store, server)) for store in self._stores]
            return [row for track in tracks for row in track.result()]

    async def _track(self, store: str, server: PostgresServer | None) -> list[Row]:
        wanted = [phase for phase in self._plan.phases if store in phase.fault().stores]
        overall = self._progress.add_task(store, total=len(wanted))
        bar = self._progress.add_task("", total=None)
        rows = []
        for phase in wanted:
            row = await self._phase(phase, store, server, self._teller(bar, store, phase))
            self._say(row)
            rows.append(row)
            self._progress.advance(overall)
        self._progress.remove_task(bar)
        return rows

    async def _phase(self, phase: Phase, store: str, server: PostgresServer | None, tell: phases.Tell) -> Row:
        disk = os.environ.get(SMALL)
        if phase.key == "full-disk" and disk is None:
            return await small_disk.run(phase, self._seed)
        return await phases.run(
            phase, store, server, usual=self._plan.size, seed=self._seed, tell=tell,
            disk=None if disk is None else Path(disk),
        )  # fmt: skip

    def _teller(self, bar: TaskID, store: str, phase: Phase) -> Callable[[str, int, int], None]:
        def tell(what: str, made: int, wanted: int) -> None:
            self._progress.update(
                bar, description=f"{store} {phase.key}: {what}", completed=made, total=wanted
            )

        return tell

    def _say(self, row: Row) -> None:
        text = f"{row.store} {row.fault}: {row.verdict}"
        if not row.skipped:
            text += (
                f"; {row.injections} injections, {row.acknowledged} acknowledged, {row.done} done, lost {row.lost}, "
                f"doubled {row.doubled}, ghosts {row.ghosts}, late {row.late}, in {row.seconds:.0f} s"
            )
        self._console.print(
            text, style="red" if row.verdict == "BROKEN" else "", highlight=False, markup=False
        )


def _start_server() -> PostgresServer:
    return PostgresServer.start(wheel_binaries() or system_binaries()[-1], _SETTINGS)


def _told(console: Console, rows: Sequence[Row], results: Path, page: Path | None) -> int:
    console.print(report.table(rows))
    for row in rows:
        for note in [*row.notes, *(row.slowest if row.late else [])]:
            console.print(f"{row.store} {row.fault}: {note}", style="red", highlight=False, markup=False)
    console.print(report.total(rows))
    console.print(f"Written: {report.write(results, rows)}")
    if page is not None:
        report.write_page(page, rows)
    return 1 if any(row.verdict == "BROKEN" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
