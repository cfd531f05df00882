"""Write the figures as JSON, and say them as markdown tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .model import Figure

HIDDEN = ("values", "load")


def write(path: Path, figures: Sequence[Figure]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n")


def read(path: Path) -> list[Figure]:
    return [Figure(**entry) for entry in json.loads(path.read_text())] if path.exists() else []


def merge(old: Sequence[Figure], new: Sequence[Figure]) -> list[Figure]:
    """New figures replace what was measured before of the same store and measure."""
    done = {(figure.store, figure.measure) for figure in new}
    return [figure for figure in old if (figure.store, figure.measure) not in done] + list(new)


def markdown(figures: Sequence[Figure]) -> str:
    lines = ["| store | measure | system | rate | CPU µs/job | config |", "|---|---|---|---|---|---|"]
    return "\n".join(lines + [_line(figure) for figure in figures])


def _line(figure: Figure) -> str:
    config = {key: value for key, value in figure.config.items() if key not in HIDDEN and value is not None}
    cpu = config.pop("cpu_us_per_job", "")
    said = ", ".join(f"{key} {_say(value)}" for key, value in config.items())
    return f"| {figure.store} | {figure.measure} | {figure.system} | {figure.rate:,.0f} | {cpu} | {said} |"


def _say(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
