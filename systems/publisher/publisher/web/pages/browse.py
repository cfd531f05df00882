"""Inspiration: what DeviantArt recommends, its daily deviations, topics and tags."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from publisher.desk import galleries
from publisher.desk.refusals import Invalid, TooLate, TooSoon
from publisher.outside.records import Page
from publisher.web.pages import frame
from publisher.web.pages.deviations import age_words, shown
from publisher.web.pages.galleries import address_of, number_of
from publisher.web.pages.times import day_of, typed_day
from publisher.web.pages.visitor import Visitor

_VIEWS = ("home", "daily", "topic", "tag")
_PAGE = 24


@frame.page
async def show(request: Request, visitor: Visitor) -> Response:
    query = request.query_params
    tag, topic = query.get("tag", "").strip(), query.get("topic", "")
    view = "tag" if tag else "topic" if topic else query.get("view", "home")
    view, offset = view if view in _VIEWS else "home", number_of(query.get("from", ""))
    day = typed_day(query.get("day", ""), day_of(visitor.now, visitor.tz)).isoformat()
    values: dict[str, Any] = {
        "view": view, "tag": tag, "topic": topic, "day": day, "found": [], "topics": [], "trouble": "", "age": "", "older": None, "until": None,
    }  # fmt: skip
    try:
        page = await _page(visitor, view, tag or topic or day, offset)
        values["topics"] = (await galleries.topics(visitor.id)).value if view == "topic" else []
    except (TooSoon, TooLate, Invalid) as refusal:
        values["trouble"] = refusal.words
    else:
        after = {"view": view, "tag": tag, "topic": topic, "from": page.value.next_offset or offset + _PAGE}
        values |= {
            "found": await shown(page.value, visitor),
            "age": age_words(page.age),
            "until": page.limited_until,
            "older": address_of("/browse", after) if page.value.has_more and view != "daily" else None,
        }
    return frame.render(request, "browse.html", values)


async def _page(visitor: Visitor, view: str, about: str, offset: int) -> galleries.Shown[Page]:
    match view:
        case "daily":
            return await galleries.daily(visitor.id, about)
        case "tag":
            return await galleries.tagged(visitor.id, about, offset)
        case "topic":
            chosen = about if not about[:1].isdecimal() else ""
            first = chosen or next((each.canonical_name for each in (await galleries.topics(visitor.id)).value), "art")  # fmt: skip
            return await galleries.on_topic(visitor.id, first, offset)
        case _:
            return await galleries.home(visitor.id, offset)


routes = [Route("/browse", show)]
