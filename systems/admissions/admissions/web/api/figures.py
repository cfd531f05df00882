"""Figures for the staff, as JSON and as tables."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from admissions.desk import figures
from admissions.web.api.base import Out, check

router = APIRouter(prefix="/api/figures", tags=["figures"], dependencies=[Depends(check)])
_SHOWN = 30  # days, when nobody says which
First = Annotated[date | None, Query(description="The first day, in the university's zone")]
Last = Annotated[date | None, Query(description="The last day; at most a year after the first")]


class Day(Out):
    day: str
    submitted: int
    verified: int
    paid: int
    completed: int
    failed: int
    withdrawn: int


class Stage(Out):
    programme: str
    term: str
    term_id: str
    state: str
    number: int


class Figures(Out):
    days: list[Day]
    stages: list[Stage]


@router.get("")
async def get_figures(first: First = None, last: Last = None) -> Figures:
    days, stages = await _days(first, last), await figures.stages()
    return Figures(
        days=[Day.model_validate(each) for each in days],
        stages=[Stage.model_validate(each) for each in stages],
    )


@router.get("/days.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
async def days_table(first: First = None, last: Last = None) -> Response:
    return _table("days", figures.table(figures.Day, await _days(first, last)))


@router.get("/stages.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
async def stages_table() -> Response:
    return _table("stages", figures.table(figures.Stage, await figures.stages()))


async def _days(first: date | None, last: date | None) -> list[figures.Day]:
    begin, end = await figures.last_days(_SHOWN)
    return await figures.days(first or min(begin, last or begin), last or max(end, first or end))


def _table(name: str, text: str) -> Response:
    told = {"content-disposition": f'attachment; filename="{name}.csv"', "x-content-type-options": "nosniff"}
    return Response(text.encode("utf-8-sig"), media_type="text/csv", headers=told)
