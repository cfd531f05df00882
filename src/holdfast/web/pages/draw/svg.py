"""Elements of a drawing. Everything is escaped, and nothing has a style attribute: the policy of the pages forbids those."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from markupsafe import Markup, escape


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """`tag("text", "a < b", x=3, class_="tick")`. An attribute of None is left out; numbers are rounded."""
    told = "".join(
        [
            f' {_attribute(key)}="{escape(_text(value))}"'
            for key, value in attributes.items()
            if value is not None
        ]
    )
    inner = "".join([escape(child) for child in children])
    return Markup(f"<{name}{told}>{inner}</{name}>")  # noqa: S704  each part is escaped above, and names are our own


def icon(name: str) -> Markup:
    """One of the symbols that stand in every page."""
    return tag("svg", tag("use", href=f"#i-{name}"), class_="icon", aria_hidden="true")


def share(value: float, whole: float) -> str:
    """As a percentage of the drawing: it stays sharp at any width, and its text keeps its size."""
    return f"{_text(100 * value / whole if whole else 0)}%"


def numbers(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Markup:
    """The same as a table, for those who want to read it."""
    lines = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows]
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head))),
        tag("tbody", *lines),
    )
    return tag("details", tag("summary", "As a table"), tag("div", table, class_="scroll"), class_="numbers")


@cache
def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _text(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
