"""The scale of a chart: round steps from 0 to above the highest value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from holdfast.kernel.errors import UsageError
from holdfast.web.pages import values
from holdfast.web.pages.draw.svg import share, tag

_STEPS = (1, 2, 2.5, 5, 10)
_LINES = 4


class Scale(NamedTuple):
    top: float
    ticks: tuple[float, ...]

    def height(self, value: float) -> float:
        """In per cent of the drawing, from below."""
        return 100 * max(0.0, min(value, self.top)) / self.top


def scale_of(highest: float) -> Scale:
    if highest <= 0:
        return Scale(1.0, (0.0, 1.0))
    power = 10 ** math.floor(math.log10(highest / _LINES))
    step = next(each * power for each in _STEPS if each * power * _LINES >= highest * 0.999)
    count = math.ceil(highest / step - 0.001)
    return Scale(step * count, tuple(step * place for place in range(count + 1)))


def frame(scale: Scale, drawn: Sequence[Markup], labels: Sequence[str], *, title: str, height: int) -> Markup:
    """The numbers at the left, and the drawing, as wide as there is room, with its lines and labels."""
    above = [(tick, f"{100 - scale.height(tick):.2f}%") for tick in scale.ticks]
    axis = [tag("text", values.short(tick), x=36, y=y, dy="0.32em", text_anchor="end") for tick, y in above]
    grid = [tag("line", x1="0", x2="100%", y1=y, y2=y, class_="grid") for _, y in above]
    plot = tag(
        "svg",
        tag("title", title),
        *grid,
        *drawn,
        *_labels(labels, height),
        role="img",
        height=height,
        class_="plot",
    )
    return Markup('<div class="axes">{}{}</div>').format(
        tag("svg", *axis, class_="axis", width=44, height=height, aria_hidden="true"), plot
    )


def _labels(labels: Sequence[str], height: int, most: int = 6) -> list[Markup]:
    """At most six of them, with the same distance."""
    if not labels:
        return []
    step = max(1, math.ceil(len(labels) / most))
    return [
        tag(
            "text",
            label,
            x=share(place, max(1, len(labels) - 1)),
            y=height + 17,
            text_anchor=_anchor(place, len(labels)),
        )
        for place, label in enumerate(labels)
        if place % step == 0
    ]


def _anchor(place: int, count: int) -> str:
    return "end" if count > 1 and place == count - 1 else "middle"


def check_numbers(kind: str, given: Sequence[float | None]) -> list[float | None]:
    """Numbers that can be drawn; None leaves a gap."""
    for value in given:
        if value is not None and not math.isfinite(value):
            raise UsageError(f"{kind} has {value!r}, which cannot be drawn; None leaves a gap.")
    return list(given)
