"""Figures: what came on each day, how many are in which state, and how long they stay where."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import figures, staying
from admissions.domain.states import State
from admissions.web.pages import frame
from admissions.web.pages.queue import LOOKS, csv_file
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web.pages import bars

DAYS = 30


async def show(request: Request, visitor: Visitor) -> Response:
    found = await figures.days(*await figures.last_days(DAYS))
    stages = [each for each in await figures.stages() if each.state != State.DRAFT]
    states = Counter[str]()
    for each in stages:
        states[each.state] += each.number
    total = sum(day.submitted for day in found)
    ended = (State.COMPLETED, State.WITHDRAWN, State.FAILED)
    values = {
        "days": found, "days_number": DAYS, "states": sorted(states.items(), key=lambda each: -each[1]), "looks": LOOKS,
        "open": sum(number for state, number in states.items() if state not in ended), "counts": states, "total": total,
        "chart": bars([day.submitted for day in found], [day.day for day in found], title=say(visitor.language, "by_day_sentence", DAYS, total)),
        "stays": await staying.stays(),
    }  # fmt: skip
    return frame.render(request, "desk_figures.html", values)


async def as_csv(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    if request.query_params.get("of") == "stages":
        return csv_file(figures.table(figures.Stage, await figures.stages()), "stages.csv")
    return csv_file(
        figures.table(figures.Day, await figures.days(*await figures.last_days(DAYS))), "days.csv"
    )


routes = [frame.at("GET /desk/figures", show), frame.at("GET /desk/figures.csv", as_csv)]
