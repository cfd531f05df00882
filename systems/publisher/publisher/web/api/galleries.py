"""Galleries and browsing at DeviantArt, out of the cache, with its age; and folders, which are changed there at once."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

import msgspec
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from publisher.desk import galleries
from publisher.web.api.base import Artist, Line, Search, Strict

router = APIRouter(prefix="/api", tags=["galleries"])
T = TypeVar("T")
Offset = Annotated[int, Query(ge=0, le=galleries.OFFSET_MOST)]
Refresh = Annotated[bool, Query(description="Ask DeviantArt now; a few times in a minute")]


class Folder(BaseModel):
    folderid: str
    name: str
    parent: str | None
    size: int | None


class Deviation(BaseModel):
    """As DeviantArt tells it."""

    deviationid: str
    title: str
    url: str
    published_time: str
    is_deleted: bool
    is_mature: bool
    thumbs: list[dict[str, Any]]
    author: dict[str, Any]
    stats: dict[str, int]


class Page(BaseModel):
    results: list[Deviation]
    has_more: bool
    next_offset: int | None


class Topic(BaseModel):
    name: str
    canonical_name: str


class Shown(BaseModel, Generic[T]):
    """`age` is in seconds. `limited_until`: DeviantArt answers nothing until then."""

    value: T
    age: float
    is_fresh: bool
    limited_until: float | None


class NewFolder(Strict):
    name: Line


class Place(Strict):
    position: Annotated[int, Field(ge=0, le=galleries.OFFSET_MOST)]


class Move(Strict):
    source: Line
    target: Line
    deviations: Annotated[list[Line], Field(min_length=1, max_length=galleries.DEVIATIONS_MOST)]


@router.get("/galleries")
async def list_folders(artist: Artist, refresh: Refresh = False) -> Shown[list[Folder]]:
    return Shown[list[Folder]](**_told(await galleries.folders(artist, refresh=refresh)))


@router.post("/galleries", status_code=201)
async def create_folder(artist: Artist, given: NewFolder) -> Folder:
    return Folder(**msgspec.to_builtins(await galleries.create_folder(artist, given.name)))


@router.post("/galleries/move", status_code=204)
async def move_deviations(artist: Artist, given: Move) -> Response:
    await galleries.move(artist, given.source, given.target, given.deviations)
    return Response(status_code=204)


@router.get("/galleries/{folder}")
async def contents(artist: Artist, folder: str, offset: Offset = 0, refresh: Refresh = False) -> Shown[Page]:
    """The newest first; the folder `all` has everything."""
    return _page(await galleries.contents(artist, folder, offset, refresh=refresh))


@router.put("/galleries/{folder}/position", status_code=204)
async def order_folder(artist: Artist, folder: str, given: Place) -> Response:
    await galleries.order_folder(artist, folder, given.position)
    return Response(status_code=204)


@router.get("/browse/home")
async def home(artist: Artist, offset: Offset = 0, refresh: Refresh = False) -> Shown[Page]:
    return _page(await galleries.home(artist, offset, refresh=refresh))


@router.get("/browse/daily")
async def daily(artist: Artist, day: Annotated[Line, Query()], refresh: Refresh = False) -> Shown[Page]:
    """Of a day such as 2026-11-19."""
    return _page(await galleries.daily(artist, day, refresh=refresh))


@router.get("/browse/tag")
async def tagged(
    artist: Artist, tag: Annotated[Search, Query()], offset: Offset = 0, refresh: Refresh = False
) -> Shown[Page]:
    return _page(await galleries.tagged(artist, tag, offset, refresh=refresh))


@router.get("/browse/topics")
async def topics(artist: Artist) -> Shown[list[Topic]]:
    return Shown[list[Topic]](**_told(await galleries.topics(artist)))


@router.get("/browse/topic")
async def on_topic(
    artist: Artist, topic: Annotated[Line, Query()], offset: Offset = 0, refresh: Refresh = False
) -> Shown[Page]:
    return _page(await galleries.on_topic(artist, topic, offset, refresh=refresh))


@router.get("/browse/tags")
async def completions(artist: Artist, begin: Annotated[Search, Query()]) -> Shown[list[str]]:
    """Tags that begin so; from two characters on."""
    return Shown[list[str]](**_told(await galleries.completions(artist, begin)))


def _page(found: galleries.Shown[Any]) -> Shown[Page]:
    return Shown[Page](**_told(found))


def _told(found: galleries.Shown[Any]) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(found)
    return told
