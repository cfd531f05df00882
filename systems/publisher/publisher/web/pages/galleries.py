"""The artist's gallery: folders with their order, what is in each, how old what is shown is; and moving deviations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from publisher.desk import galleries
from publisher.desk.refusals import Invalid, TooLate, TooSoon
from publisher.outside.records import Page
from publisher.web.pages import frame
from publisher.web.pages.deviations import age_words, shown
from publisher.web.pages.frame import Notice
from publisher.web.pages.numbers import whole
from publisher.web.pages.visitor import Visitor

_PAGE = 24


@frame.page
async def show(request: Request, visitor: Visitor) -> Response:
    folder, offset = (
        request.query_params.get("folder", "all"),
        number_of(request.query_params.get("from", "")),
    )
    values: dict[str, Any] = {"folder": folder, "folders": [], "found": [], "older": None, "newer": None, "trouble": "", "age": "", "until": None}  # fmt: skip
    try:
        folders = await galleries.folders(visitor.id)
        page = await galleries.contents(visitor.id, folder, offset)
    except (TooSoon, TooLate, Invalid) as refusal:
        values["trouble"] = refusal.words
    else:
        values |= {
            "folders": folders.value,
            "found": await shown(page.value, visitor),
            "age": age_words(max(page.age, folders.age)),
            "until": page.limited_until or folders.limited_until,
            **_links(folder, offset, page.value),
        }
    return frame.render(request, "galleries.html", values)


def _links(folder: str, offset: int, page: Page) -> dict[str, str | None]:
    def at(begin: int) -> str:
        return address_of("/galleries", {"folder": folder, "from": begin})

    return {
        "older": at(page.next_offset or offset + _PAGE) if page.has_more else None,
        "newer": at(max(0, offset - _PAGE)) if offset else None,
    }


def number_of(text: str) -> int:
    return whole(text, 0, 99_999) or 0


def address_of(path: str, query: Mapping[str, object]) -> str:
    return f"{path}?{urlencode({name: value for name, value in query.items() if value})}"


@frame.page
async def refresh(request: Request, visitor: Visitor) -> Response:
    """A few times a minute: more would cost the artist's own limit at DeviantArt."""
    form = await frame.read(request)
    folder = form["folder"] or "all"
    await galleries.folders(visitor.id, refresh=True)
    found = await galleries.contents(visitor.id, folder)
    if found.age > 5:
        found = await galleries.contents(visitor.id, folder, refresh=True)
    words = "Looked again: this is what DeviantArt has now." if found.is_fresh else "DeviantArt does not answer right now; this is what we had."  # fmt: skip
    return frame.go(
        request,
        "/galleries",
        Notice(words, "ok" if found.is_fresh else "late"),
        query=urlencode({"folder": folder}),
    )


@frame.page
async def create(request: Request, visitor: Visitor) -> Response:
    made = await galleries.create_folder(visitor.id, (await frame.read(request))["name"])
    return frame.go(request, "/galleries", Notice(f"The folder “{made.name}” is made."))


@frame.page
async def order(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    await galleries.order_folder(visitor.id, request.path_params["folder"], number_of(form["position"]))
    return frame.go(request, "/galleries", Notice("The order is changed at DeviantArt."))


@frame.page
async def move(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    chosen = form.all("deviation")
    if not chosen or not form["target"]:
        return frame.back(request, Notice("Choose deviations, and a folder for them.", "late"))
    await galleries.move(visitor.id, form["source"], form["target"], chosen)
    words = f"{len(chosen)} moved at DeviantArt."
    return frame.go(request, "/galleries", Notice(words), query=urlencode({"folder": form["target"]}))


routes = [
    Route("/galleries", show),
    Route("/galleries/refresh", refresh, methods=["POST"]),
    Route("/galleries/create", create, methods=["POST"]),
    Route("/galleries/move", move, methods=["POST"]),
    Route("/galleries/{folder}/order", order, methods=["POST"]),
]
