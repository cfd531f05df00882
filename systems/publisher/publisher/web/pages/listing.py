"""Lists of posts by pages: drafts, and everything that has a date or had one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.pages import Column, Cursor
from publisher.desk import reading, templates
from publisher.desk.rows import PostRow
from publisher.domain.posts import missing
from publisher.domain.states import State
from publisher.web.pages import frame
from publisher.web.pages.cards import card, covers_of
from publisher.web.pages.folders import folders_of
from publisher.web.pages.slots import next_free
from publisher.web.pages.times import field_of
from publisher.web.pages.visitor import Visitor

_DATED = tuple(state for state in State if state not in (State.DRAFT, State.REVIEW))
TABS = {
    "all": ("All", _DATED),
    "published": ("Published", (State.PUBLISHED,)),
    "scheduled": ("Scheduled", (State.SCHEDULED, State.PUBLISHING)),
    "needs": ("Needs you", (State.UNKNOWN, State.FAILED)),
    "cancelled": ("Cancelled", (State.CANCELLED,)),
}


async def page_of(
    request: Request, visitor: Visitor, states: Collection[State], size: int, total: int
) -> dict[str, Any]:
    """One page of posts by their time, with their pictures."""
    cursor = Cursor(request, size=size)
    search = request.query_params.get("q", "")[:100]
    found = await _found(visitor, states, search, cursor)
    covers = await covers_of(visitor.id, [post.id for post in found])
    rows = cursor.rows(
        [card(post, visitor, covers.get(post.id)) for post in found],
        key=lambda each: (reading.time_of(each.row), each.id),
        total="" if search else f"{total:,}",
    )
    return {"rows": rows, "search": search}


async def _found(visitor: Visitor, states: Collection[State], search: str, cursor: Cursor) -> list[PostRow]:
    place = _place(cursor.key)
    if place is None:
        return await reading.listing(visitor.id, states=states, search=search, limit=cursor.limit)
    if not cursor.is_backwards:
        return await reading.listing(
            visitor.id, states=states, search=search, before=place, limit=cursor.limit
        )
    found = await reading.listing(visitor.id, states=states, search=search, after=place, limit=cursor.limit)
    return found[::-1]  # as the database found them: the cursor turns them


def _place(key: tuple[Any, ...] | None) -> tuple[float, str] | None:
    """What is no place of ours begins at the begin."""
    if key is None or len(key) != 2 or not isinstance(key[0], int | float) or not isinstance(key[1], str):
        return None
    return float(key[0]), key[1]


@frame.page
async def posts(request: Request, visitor: Visitor) -> Response:
    tab = request.query_params.get("show", "all")
    tab = tab if tab in TABS else "all"
    total = visitor.count(*TABS[tab][1])
    values = await page_of(request, visitor, TABS[tab][1], 25, total)
    values |= {
        "tab": tab,
        "tabs": [
            (word, f"{frame.pages.address(request, '/posts')}?show={name}", visitor.count(*states))
            for name, (word, states) in TABS.items()
        ],
        "tab_word": TABS[tab][0],
        "columns": [Column(""), Column("Post"), Column("State"), Column("Tags"), Column("Time", "right")],
    }
    return frame.render(request, "posts.html", values)


@frame.page
async def drafts(request: Request, visitor: Visitor) -> Response:
    values = await page_of(request, visitor, (State.DRAFT,), 50, visitor.count("draft"))
    lacking = {each.id: missing(each.row.told, files=1 if each.picture else 0) for each in values["rows"]}
    values |= {
        "lacking": lacking,
        "columns": [Column(""), Column("Draft"), Column("Missing"), Column("Tags"), Column("Changed", "right")],
        "folders": (await folders_of(visitor)).all,
        "first": field_of(await next_free(visitor), visitor.tz),
        "tag_sets": await templates.listing(visitor.id, "tags"),
        "texts": await templates.listing(visitor.id, "description"),
    }  # fmt: skip
    return frame.render(request, "drafts.html", values)


routes = [Route("/posts", posts), Route("/drafts", drafts)]
