"""Bars: one for each count, the last one marked."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from holdfast.kernel.errors import UsageError
from holdfast.web.pages import values
from holdfast.web.pages.draw.scale import check_numbers, frame, scale_of
from holdfast.web.pages.draw.svg import numbers, tag

_GAP = 0.25  # of a bar's room


def bars(counts: Sequence[float], labels: Sequence[str] = (), *, title: str, height: int = 130) -> Markup:
    """`title` is the sentence that screen readers hear. With labels, there is one for each count; the first and the last are shown."""
    if labels and len(labels) != len(counts):
        raise UsageError(f"bars has {len(counts)} counts and {len(labels)} labels; give one for each count.")
    known = [value or 0 for value in check_numbers("counts", counts)]
    scale = scale_of(max(known, default=0))
    room = 100 / max(1, len(known))
    drawn = [
        tag(
            "rect",
            x=f"{room * (place + _GAP / 2):.2f}%",
            width=f"{room * (1 - _GAP):.2f}%",
            y=f"{100 - scale.height(value):.2f}%",
            height=f"{scale.height(value):.2f}%",
            rx=2,
            class_="bar last" if place == len(known) - 1 else "bar",
        )
        for place, value in enumerate(known)
    ]
    shown = (labels[0], labels[-1]) if len(labels) > 1 else labels
    rows = zip(labels or range(1, len(known) + 1), map(values.number, known), strict=True)
    chart = frame(scale, drawn, shown, title=title, height=height)
    return tag("figure", chart, numbers(("", title), rows), class_="chart")
