"""Templates and prices: what an artist uses again and again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from publisher.desk import presets, templates
from publisher.web.api.base import Artist, Id, Line, Strict, Text

router = APIRouter(prefix="/api", tags=["templates and prices"])
Kind = Annotated[str, Field(pattern=f"^({'|'.join(templates.KINDS)})$")]
Cents = Annotated[int, Field(ge=0, le=10**9)]


class TemplateIn(Strict):
    name: Line
    text: Text


class NewTemplate(TemplateIn):
    kind: Kind


class Template(BaseModel):
    id: str
    kind: str
    name: str
    text: str
    made_at: float


class PriceIn(Strict):
    """In cents; equal ones are a fixed price."""

    name: Line
    low: Cents
    high: Cents
    is_default: bool = False


class Price(BaseModel):
    id: str
    name: str
    low: int
    high: int
    is_default: bool
    made_at: float


@router.get("/templates")
async def list_templates(artist: Artist, kind: Annotated[Kind | None, Query()] = None) -> list[Template]:
    return [Template(**asdict(each)) for each in await templates.listing(artist, kind)]


@router.post("/templates", status_code=201)
async def make_template(artist: Artist, given: NewTemplate) -> Template:
    made = await templates.make(artist, given.kind, given.name, given.text)
    return Template(**asdict(await templates.get(artist, made)))


@router.put("/templates/{template_id}")
async def change_template(artist: Artist, template_id: Id, given: TemplateIn) -> Template:
    await templates.change(artist, template_id, given.name, given.text)
    return Template(**asdict(await templates.get(artist, template_id)))


@router.delete("/templates/{template_id}", status_code=204)
async def delete_template(artist: Artist, template_id: Id) -> Response:
    await templates.delete(artist, template_id)
    return Response(status_code=204)


@router.get("/presets")
async def list_prices(artist: Artist) -> list[Price]:
    return [Price(**asdict(each)) for each in await presets.listing(artist)]


@router.post("/presets", status_code=201)
async def make_price(artist: Artist, given: PriceIn) -> Price:
    made = await presets.make(artist, given.name, given.low, given.high, is_default=given.is_default)
    return Price(**asdict(await presets.get(artist, made)))


@router.put("/presets/{preset_id}")
async def change_price(artist: Artist, preset_id: Id, given: PriceIn) -> Price:
    await presets.change(artist, preset_id, given.name, given.low, given.high, is_default=given.is_default)
    return Price(**asdict(await presets.get(artist, preset_id)))


@router.delete("/presets/{preset_id}", status_code=204)
async def delete_price(artist: Artist, preset_id: Id) -> Response:
    await presets.delete(artist, preset_id)
    return Response(status_code=204)
