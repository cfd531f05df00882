"""What a command prints: lines and tables for people, one JSON document for programs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from holdfast.runtime.cli import colour
from holdfast.runtime.cli.table import Column, clean, table

_FIELD = 14  # places for the name of a field


def say(text: str = "") -> None:
    print(text)


def complain(text: str) -> None:
    """What is not as wished, where programs that read the output do not see it."""
    print(f"holdfast: {clean(text)}", file=sys.stderr)


def document(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[object]], *, nothing: str) -> None:
    if not rows:
        say(nothing)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in table(columns, rows, width, coloured=colour.is_wanted()):
        say(line)


def show_fields(fields: Sequence[tuple[str, object]]) -> None:
    """A name and a value on each line; what there is not is left out."""
    coloured = colour.is_wanted()
    for name, value in fields:
        if value is not None:
            first, *rest = str(value).splitlines() or [""]
            shown = colour.painted(clean(first), colour.STATES if coloured and name == "state" else {})
            say(f"{name:<{_FIELD}}{shown}")
            for line in rest:
                say(f"{'':<{_FIELD}}{clean(line)}")
