"""Automations: what they are, what they would choose now, and what they did."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from publisher.desk import automations
from publisher.web.api.base import Artist, Id, Line, RowId, Strict, Text

router = APIRouter(prefix="/api/automations", tags=["automations"])
Weekdays = Annotated[list[Annotated[int, Field(ge=0, le=6)]], Field(min_length=1, max_length=7)]
Posts = Annotated[int, Field(ge=1, le=100)]


class _Rule(Strict):
    weekdays: Weekdays = Field(default_factory=lambda: list(range(7)), description="0 is Monday")
    is_on: bool = True


class FixedTime(_Rule):
    kind: Literal["fixed_time"]
    clock: Annotated[str, Field(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]


class Interval(_Rule):
    """`since`: from when it is counted; without it, from now."""

    kind: Literal["interval"]
    minutes: Annotated[int, Field(ge=5, le=10_080)]
    posts: Posts = 1
    since: Annotated[float, Field(ge=0, le=4_102_444_800)] | None = None


class DailyQuota(_Rule):
    kind: Literal["daily_quota"]
    posts: Posts


Rule = Annotated[FixedTime | Interval | DailyQuota, Field(discriminator="kind")]


class License(Strict):
    creative_commons: bool = False
    commercial: bool = False
    modify: Literal["yes", "no", "share"] = "no"


class Default(Strict):
    value: bool | int | Text | list[Line] | License
    when: Literal["if_empty", "always"] = "if_empty"


class Wishes(Strict):
    """What is left out stays as it is, or has its default in a new one."""

    name: Line | None = None
    description: Text | None = None
    colour: Line | None = None
    selection: Literal["fifo", "lifo", "random"] | None = None
    agreement: Literal["any", "all"] | None = None
    jitter_low: Annotated[int, Field(ge=0, le=3600)] | None = None
    jitter_high: Annotated[int, Field(ge=0, le=3600)] | None = None
    only_stash: bool | None = None
    preset_id: RowId | None = None
    rules: Annotated[list[Rule], Field(max_length=20)] | None = None
    defaults: Annotated[dict[Line, Default], Field(max_length=20)] | None = None


class Edit(Wishes):
    """With `version`, only when nobody has changed it since that one."""

    version: Annotated[int, Field(ge=1, le=2**53)] | None = None


class Switch(Strict):
    is_on: bool


class Order(Strict):
    automation_ids: Annotated[list[RowId], Field(min_length=1, max_length=50)]


class Automation(BaseModel):
    id: str
    position: int
    is_on: bool
    name: str
    description: str
    colour: str
    selection: str
    agreement: str
    jitter_low: int
    jitter_high: int
    only_stash: bool
    preset_id: str | None
    rules: list[dict[str, Any]]
    defaults: dict[str, Any]
    note: str
    version: int
    made_at: float
    next_run: float | None


class Made(BaseModel):
    id: str


class Passed(BaseModel):
    post_id: str
    title: str
    why: str


class WouldPost(BaseModel):
    post_id: str
    title: str
    at: float


class TrialTime(BaseModel):
    nominal_at: float
    wanted: int
    posts: list[WouldPost]


class Trial(BaseModel):
    """What would happen if nothing changed meanwhile."""

    times: list[TrialTime]
    skipped: list[Passed]
    words: str


class Run(BaseModel):
    """What was done at one nominal time. `chosen` has the id and the title of each post."""

    nominal_at: float
    at: float
    seconds: float
    wanted: int
    chosen: list[tuple[str, str]]
    skipped: list[Passed]
    words: str


@router.get("")
async def list_automations(artist: Artist) -> list[Automation]:
    return [_shown(each) for each in await automations.listing(artist)]


@router.post("", status_code=201)
async def make_automation(artist: Artist, given: Wishes) -> Automation:
    """It is off at first."""
    made = await automations.make(artist, _told(given))
    return _shown(await automations.get(artist, made))


@router.post("/order", status_code=204)
async def order_automations(artist: Artist, given: Order) -> Response:
    """These first; the others behind them, as they were."""
    await automations.reorder(artist, given.automation_ids)
    return Response(status_code=204)


@router.get("/{automation_id}")
async def get_automation(artist: Artist, automation_id: Id) -> Automation:
    return _shown(await automations.get(artist, automation_id))


@router.patch("/{automation_id}")
async def change_automation(artist: Artist, automation_id: Id, given: Edit) -> Automation:
    return _shown(await automations.change(artist, automation_id, _told(given), given.version))


@router.post("/{automation_id}/switch", status_code=204)
async def switch_automation(artist: Artist, automation_id: Id, given: Switch) -> Response:
    await automations.toggle(artist, automation_id, is_on=given.is_on)
    return Response(status_code=204)


@router.post("/{automation_id}/duplicate", status_code=201)
async def duplicate_automation(artist: Artist, automation_id: Id) -> Made:
    return Made(id=await automations.duplicate(artist, automation_id))


@router.delete("/{automation_id}", status_code=204)
async def delete_automation(artist: Artist, automation_id: Id) -> Response:
    """What it has scheduled stays scheduled."""
    await automations.delete(artist, automation_id)
    return Response(status_code=204)


@router.get("/{automation_id}/trial")
async def try_automation(artist: Artist, automation_id: Id) -> Trial:
    """What would it choose? Nothing is written."""
    return Trial(**asdict(await automations.trial(artist, automation_id)))


@router.get("/{automation_id}/log")
async def log_of_automation(
    artist: Artist,
    automation_id: Id,
    before: Annotated[float | None, Query(ge=0, le=1e11)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> list[Run]:
    """The newest first; `before` is the `nominal_at` of the last one that you have."""
    found = await automations.log(artist, automation_id, before=before, limit=limit)
    return [Run(**asdict(each)) for each in found]


def _told(given: Wishes) -> dict[str, Any]:
    """What was said. A price may be taken away by null; nothing else can be null."""
    told = given.model_dump(exclude_unset=True, exclude={"version"})
    return {name: value for name, value in told.items() if value is not None or name == "preset_id"}


def _shown(row: automations.AutomationRow) -> Automation:
    wishes = msgspec.to_builtins(row.wishes)
    fields = {
        name: getattr(row, name)
        for name in ("id", "position", "is_on", "note", "version", "made_at", "next_run")
    }
    return Automation(**wishes, **fields)
