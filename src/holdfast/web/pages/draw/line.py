"""A line over time, with bars and dated marks where a second thing is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from holdfast.kernel.errors import UsageError
from holdfast.web.pages import values
from holdfast.web.pages.draw.scale import Scale, check_numbers, frame, scale_of
from holdfast.web.pages.draw.svg import numbers, share, tag


def line(
    points: Sequence[float | None],
    labels: Sequence[str] = (),
    *,
    title: str,
    second: Sequence[float] = (),
    marks: Sequence[tuple[int, str]] = (),
    height: int = 150,
) -> Markup:
    """`title` is the sentence that screen readers hear. `labels` and `second`, drawn as red bars, are as many as the points;
    `marks` are (place, word). None leaves a gap. The numbers follow as a table that can be opened."""
    for name, given in (("labels", labels), ("second", second)):
        if given and len(given) != len(points):
            raise UsageError(
                f"line has {len(points)} points and {len(given)} {name}; give one for each point."
            )
    known, bars = check_numbers("points", points), check_numbers("second", second)
    scale = scale_of(max((value for value in (*known, *bars) if value is not None), default=0))
    drawn = [*_lines(known, scale), *_bars(bars, scale), *_marks(marks, len(points)), *_last(known, scale)]
    head = ("", title, *(("second",) if second else ()))
    columns = [map(values.number, known), *([map(values.number, bars)] if bars else [])]
    rows = zip(labels or range(1, len(points) + 1), *columns, strict=True)
    chart = frame(scale, drawn, labels, title=title, height=height)
    return tag("figure", chart, numbers(head, rows), class_="chart")


def _lines(points: list[float | None], scale: Scale) -> Iterator[Markup]:
    """In a drawing of its own that is stretched to the width: a path knows no per cent."""
    paths = []
    for run in _runs(points):
        xs = [100 * place / max(1, len(points) - 1) for place, _ in run]
        path = " ".join(
            f"{x:.2f},{100 - scale.height(value):.2f}" for x, (_, value) in zip(xs, run, strict=True)
        )
        paths.append(tag("polygon", points=f"{xs[0]:.2f},100 {path} {xs[-1]:.2f},100", class_="area"))
        paths.append(tag("polyline", points=path, class_="line"))
    yield tag(
        "svg",
        *paths,
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        width="100%",
        height="100%",
        class_="stretched",
    )


def _runs(points: list[float | None]) -> Iterator[list[tuple[int, float]]]:
    run: list[tuple[int, float]] = []
    for place, value in enumerate([*points, None]):
        if value is not None:
            run.append((place, value))
        elif run:
            yield run
            run = []


def _bars(bars: list[float | None], scale: Scale) -> Iterator[Markup]:
    width = 100 / max(1, len(bars) - 1) * 0.55
    for place, value in enumerate(bars):
        height = scale.height(value or 0)
        x = max(0.0, min(100 * place / max(1, len(bars) - 1) - width / 2, 100 - width))
        if height:
            yield tag(
                "rect",
                x=f"{x:.2f}%",
                width=f"{width:.2f}%",
                y=f"{100 - height:.2f}%",
                height=f"{height:.2f}%",
                class_="bar dead",
            )


def _marks(marks: Sequence[tuple[int, str]], count: int) -> Iterator[Markup]:
    for row, (place, word) in enumerate(marks):
        x, is_right = share(place, max(1, count - 1)), place > count / 2
        yield tag("line", x1=x, x2=x, y1="0", y2="100%", class_="mark")
        yield tag(
            "text",
            word,
            x=x,
            dx=-5 if is_right else 5,
            y=9 + 13 * (row % 2),  # words that stand near each other
            text_anchor="end" if is_right else "start",
            class_="word",
        )


def _last(points: list[float | None], scale: Scale) -> Iterator[Markup]:
    if points and points[-1] is not None:
        yield tag("circle", cx="100%", cy=f"{100 - scale.height(points[-1]):.2f}%", r=3, class_="dot")
