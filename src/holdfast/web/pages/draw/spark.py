"""A spark: how something went, as small as a word, without axes."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from holdfast.web.pages.draw.scale import check_numbers
from holdfast.web.pages.draw.svg import tag

_WIDTH, _HEIGHT, _EDGE = 88, 22, 2


def spark(points: Sequence[float], *, title: str, state: str = "") -> Markup:
    """`title` is the sentence that screen readers hear. `state` gives its colour: dead for failures, else the accent."""
    known = [value or 0 for value in check_numbers("points", points)]
    highest = max(known, default=0)
    places = [
        (
            _EDGE + (_WIDTH - 2 * _EDGE) * place / max(1, len(known) - 1),
            _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * (value / highest if highest else 0),
        )
        for place, value in enumerate(known)
    ]
    drawn = []
    if places:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        below = f"{places[0][0]:.1f},{_HEIGHT} {path} {places[-1][0]:.1f},{_HEIGHT}"
        drawn = [
            tag("polygon", points=below, class_="area"),
            tag("polyline", points=path, class_="line"),
            tag("circle", cx=round(places[-1][0], 1), cy=round(places[-1][1], 1), r=2, class_="dot"),
        ]
    classes = f"spark {'off' if not highest else state}".rstrip()
    return tag(
        "svg",
        tag("title", title),
        *drawn,
        role="img",
        class_=classes,
        width=_WIDTH,
        height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
    )
