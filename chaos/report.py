"""The table: for a terminal, for a page, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.table import Table

from chaos.phase import Row

_TABLE = "<!-- table -->\n"  # on the page: what follows is made by a whole run
_HEADS = (
    "fault", "store", "injections", "acknowledged", "done", "unanswered", "lost", "doubled", "ghosts", "unknown", "looked up",
    "replayed", "recovered in (p50, max)", "verdict",
)  # fmt: skip


def _cells(row: Row) -> tuple[str, ...]:
    if row.skipped:
        return (row.fault, row.store, row.skipped, *[""] * (len(_HEADS) - 4), row.verdict)
    numbers = (
        row.injections, row.acknowledged, row.done, row.unanswered, row.lost, row.doubled, row.ghosts, row.unknown, row.looked_up,
        row.replayed,
    )  # fmt: skip
    times = "" if row.recover_max is None else f"{row.recover_p50:.1f} s, {row.recover_max:.1f} s"
    if row.late:
        times += f", {row.late} late (over {row.limit:g} s)"
    return (row.fault, row.store, *(f"{number:,}" for number in numbers), times, row.verdict)


def table(rows: Sequence[Row]) -> Table:
    made = Table(*_HEADS, title="What was done to Holdfast, and what became of the work")
    for row in rows:
        made.add_row(*_cells(row), style="red" if row.verdict == "BROKEN" else "dim" if row.skipped else "")
    return made


def total(rows: Sequence[Row]) -> str:
    """In one line."""
    found = {
        name: sum(getattr(row, name) for row in rows) for name in ("kills", "zombies", "acknowledged", "done")
    }
    wrong = {name: sum(getattr(row, name) for row in rows) for name in ("lost", "doubled", "ghosts", "late")}
    return ", ".join(f"{name} {number:,}" for name, number in (found | wrong).items())


def markdown(rows: Sequence[Row]) -> str:
    lines = [
        "| " + " | ".join(_HEADS) + " |",
        "|---|---|" + "--:|" * (len(_HEADS) - 4) + "---|---|",
        *("| " + " | ".join(_cells(row)) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def write(folder: Path, rows: Sequence[Row]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "chaos.json"
    file.write_bytes(msgspec.json.format(msgspec.json.encode(list(rows)), indent=2) + b"\n")
    return file


def write_page(page: Path, rows: Sequence[Row]) -> None:
    """Put the table of a whole run in place of the last one."""
    before, mark, _ = page.read_text().partition(_TABLE)
    page.write_text(f"{before}{mark}{markdown(rows)}\n{total(rows)}\n")


def read(file: Path) -> list[Row]:
    return msgspec.json.decode(file.read_bytes(), type=list[Row])
