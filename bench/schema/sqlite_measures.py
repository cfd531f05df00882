"""What only SQLite is asked: the physical layout, and finishing by one statement or by one per row."""

from __future__ import annotations

from dataclasses import replace

from .measures import Figures, Session, figure_of, fresh, take_turns
from .model import Work
from .sqlite_bench import SqliteBench


def layouts(session: Session) -> Figures:
    assert isinstance(session.bench, SqliteBench)
    yield from _compare(session, "layout", session.bench.layouts())


def forms(session: Session) -> Figures:
    assert isinstance(session.bench, SqliteBench)
    yield from _compare(session, "finish_form", session.bench.forms())


def _compare(session: Session, measure: str, variants: list[str]) -> Figures:
    names = ["limit", *variants]
    for batch, queued in session.size.queued.items():
        work = Work(batch)
        speeds = take_turns(session, names, lambda name: fresh(session, name, queued, work))  # noqa: B023
        for name in names:
            figure = figure_of(session, measure, name, speeds, batch=batch, variant=name)
            yield replace(figure, system=_system(name))


def _system(name: str) -> str:
    if name == "limit":
        return name
    return f"design-{name[-1]}" if name[-1] in "AC" or name.endswith(" D") else "design-C"
