"""A table for people: as wide as its cells, and no wider than the terminal; long cells are shortened with `…`."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import msgspec

from holdfast.runtime.cli.colour import painted

_GAP = "  "
_LEAST = 6  # characters that a shortened cell keeps
_USEFUL = 12  # characters below which a cell says little: then a column that can be spared goes
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_CONTROLS |= {ord("\n"): " ", ord("\t"): " ", ord("\r"): " ", 0x2028: " ", 0x2029: " "}


class Column(msgspec.Struct, frozen=True):
    title: str
    right: bool = False  # numbers
    whole: bool = False  # never shortened: an id that cannot be copied is of no use
    spare: bool = False  # left out where there is too little room; of several, the last goes first
    colours: Mapping[str, str] = {}  # by the first word of a cell


class Moment(msgspec.Struct, frozen=True):
    """A cell that has a short form for where there is little room."""

    whole: str
    short: str

    def __str__(self) -> str:
        return self.whole


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int | None, *, coloured: bool = False
) -> list[str]:
    """The lines. Without a width (not a terminal) every cell is whole."""
    cells = _cells(columns, rows)
    if width is not None and _total(_widths(cells)) > width:
        brief = [[value.short if isinstance(value, Moment) else value for value in row] for row in rows]
        columns, cells = _spared(columns, _cells(columns, brief), width)
    widths = _widths(cells) if width is None else fitted(columns, _widths(cells), width)
    title, *rest = [_cells_of_line(columns, row, widths) for row in cells]
    if coloured:
        rest = [
            [painted(text, each.colours) for each, text in zip(columns, row, strict=True)] for row in rest
        ]
    return [_GAP.join(row).rstrip() for row in (title, *rest)]


def _spared(
    columns: Sequence[Column], cells: list[list[str]], width: int
) -> tuple[Sequence[Column], list[list[str]]]:
    """Without the columns that would only make the others unreadable."""
    while True:
        widths = _widths(cells)
        least = [
            size if each.whole else min(size, _USEFUL) for each, size in zip(columns, widths, strict=True)
        ]
        spare = [at for at, each in enumerate(columns) if each.spare]
        if _total(least) <= width or not spare:
            return columns, cells
        columns = [each for at, each in enumerate(columns) if at != spare[-1]]
        cells = [[text for at, text in enumerate(row) if at != spare[-1]] for row in cells]


def _cells(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[list[str]]:
    titles = [column.title.upper() if column.title.islower() else column.title for column in columns]
    return [titles, *(["-" if value is None else clean(str(value)) for value in row] for row in rows)]


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(breadth, column)) for column in zip(*cells, strict=True)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def fitted(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """The widest column that may be shortened gives first, until all fit or none can give more."""
    found = list(widths)
    while _total(found) > width:
        givers = [at for at, each in enumerate(columns) if not each.whole and found[at] > _LEAST]
        if not givers:
            break
        found[max(givers, key=lambda at: found[at])] -= 1
    return found


def _cells_of_line(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        _cell(text, size, right=each.right) for each, text, size in zip(columns, row, widths, strict=True)
    ]


def _cell(text: str, size: int, *, right: bool) -> str:
    short = shortened(text, size)
    space = " " * (size - breadth(short))
    return space + short if right else short + space


def shortened(text: str, size: int) -> str:
    """At most `size` places on the screen."""
    if breadth(text) <= size:
        return text
    kept, used = "", 1
    for letter in text:
        used += breadth(letter)
        if used > size:
            break
        kept += letter
    return f"{kept}…"


def breadth(text: str) -> int:
    """Places on the screen: wide letters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def clean(text: str) -> str:
    """On one line, and unable to command the terminal: an error's text may hold anything."""
    return text.translate(_CONTROLS)
