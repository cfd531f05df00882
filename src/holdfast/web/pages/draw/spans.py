"""What happened when: one row for each attempt and step, each a bar on one scale of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
from markupsafe import Markup

from holdfast.kernel.errors import UsageError
from holdfast.web.pages import values
from holdfast.web.pages.draw.svg import icon, share, tag

_ROW = 25
_STEPS = (
    0.001,
    0.01,
    0.1,
    0.5,
    1,
    2,
    5,
    10,
    20,
    30,
    60,
    120,
    300,
    600,
    1800,
    3600,
    7200,
    21_600,
    43_200,
    86_400,
)
_MOST = 7  # ticks
_BAR, _INNER = 12, 8


class Span(msgspec.Struct, frozen=True):
    """One row: from `start` to `end`, in seconds on any clock. `depth` 1 stands below the row before it, as a step of it.

    `is_open`: nobody knows its end, so it is an outline.
    """

    label: str
    start: float
    end: float
    state: Literal["ok", "run", "wait", "held", "late", "dead", "unknown", "off"] = "ok"
    words: str = ""
    depth: int = 0
    is_open: bool = False


def timeline(spans: Sequence[Span], *, title: str) -> Markup:
    """Time begins with the first span. The rows can be read as a list, with their times."""
    if not spans:
        return Markup("")
    begin = min(span.start for span in spans)
    for span in spans:
        if not 0 <= span.end - span.start < float("inf"):
            raise UsageError(
                f"The span {span.label!r} begins at {span.start} and ends at {span.end}, which is no time."
            )
    top = max(max(span.end for span in spans) - begin, 0.001) * 1.04
    drawn = [_grid(tick, top, len(spans)) for tick in _ticks(top)]
    for place, span in enumerate(spans):
        drawn += _row(span, place, begin, top)
    rows = [_label(span) for span in spans]
    plot = tag("svg", *drawn, class_="plot", height=_ROW * len(spans) + _ROW, aria_hidden="true")
    return tag("figure", tag("ol", *rows, aria_label=title), plot, class_="spans")


def _ticks(top: float) -> list[float]:
    step = next((each for each in _STEPS if top / each <= _MOST), math.ceil(top / _MOST / 86_400) * 86_400)
    return [step * place for place in range(int(top / step) + 1)]


def _label(span: Span) -> Markup:
    took = values.duration(span.end - span.start)
    heard = f", {'no end' if span.is_open else took}{', ' + span.words if span.words else ''}"
    return tag(
        "li", icon(span.state), tag("span", span.label), tag("span", heard, class_="heard"),
        class_=f"{span.state}{' step' if span.depth else ''}",
    )  # fmt: skip


def _grid(tick: float, top: float, count: int) -> Markup:
    x, height = share(tick, top), _ROW * (count + 1)
    return tag(
        "g",
        tag("line", x1=x, x2=x, y1=_ROW - 4, y2=height, class_="grid"),
        tag(
            "text",
            "0" if not tick else f"+{values.duration(tick)}",
            x=x,
            y=14,
            text_anchor="middle" if tick else "start",
        ),
    )


def _row(span: Span, place: int, begin: float, top: float) -> list[Markup]:
    """The bar, and its words where there is room: after it, or before it when it ends late."""
    thick = _INNER if span.depth else _BAR
    middle = _ROW * (place + 1) + _ROW / 2
    start, end = span.start - begin, span.end - begin
    width = max(end - start, top * 0.006)
    is_late = end > top * 0.6
    drawn = [
        tag(
            "rect", x=share(start, top), width=share(width, top), y=middle - thick / 2, height=thick, rx=2,
            class_=f"bar {span.state}{' open' if span.is_open else ''}",
        ),
        tag(
            "text", span.words, x=share(start if is_late else start + width, top), dx=-8 if is_late else 8, y=middle,
            dy="0.32em", text_anchor="end" if is_late else "start", class_="word",
        ),
    ]  # fmt: skip
    if not span.depth and place:
        y = _ROW * (place + 1)
        drawn.insert(0, tag("line", x1="0", x2="100%", y1=y, y2=y, class_="grid"))
    return drawn
