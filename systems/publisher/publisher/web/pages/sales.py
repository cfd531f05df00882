"""The sale queue: what a program of the artist works through, by an API key."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.pages import Column
from publisher.desk import presets, reading, sales
from publisher.domain.states import State
from publisher.web.pages import frame
from publisher.web.pages.frame import Notice
from publisher.web.pages.visitor import Visitor

_SHOWN = 50
LOOKS = {
    "pending": ("wait", "Waiting"),
    "processing": ("run", "Going on"),
    "completed": ("ok", "Done"),
    "failed": ("dead", "Failed"),
    "skipped": ("off", "Left out"),
}


@frame.page
async def show(request: Request, visitor: Visitor) -> Response:
    state = request.query_params.get("state", "")
    state = state if state in LOOKS else ""
    before = request.query_params.get("before") or None
    found = await sales.listing(visitor.id, state=state or None, before=before, limit=_SHOWN + 1)
    values = {
        "entries": found[:_SHOWN],
        "older": found[_SHOWN - 1].id if len(found) > _SHOWN else None,
        "state": state,
        "counts": await sales.counts(visitor.id),
        "looks": LOOKS,
        "presets": await presets.listing(visitor.id),
        "published": await reading.listing(visitor.id, states=[State.PUBLISHED], limit=30),
        "columns": [Column("Post"), Column("Price", "right"), Column("State"), Column("Tries", "right"), Column("Since"), Column("")],
    }  # fmt: skip
    return frame.render(request, "sales.html", values)


@frame.page
async def add(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    ids = list(form.all("post"))
    if not ids:
        return frame.go(request, "/sales", Notice("Choose a post first.", "late"))
    results = await sales.by_hand(visitor.id, ids, form["preset_id"] or None)
    wrong = [each.words for each in results if not each.ok]
    if wrong:
        return frame.go(
            request, "/sales", Notice(f"{len(results) - len(wrong)} of {len(results)} added.", "late", wrong)
        )
    return frame.go(request, "/sales", Notice(f"{len(results)} added to the queue."))


@frame.page
async def skip(request: Request, visitor: Visitor) -> Response:
    await sales.skip(visitor.id, request.path_params["sale_id"])
    return frame.go(request, "/sales", Notice("Left out: it is not offered.", "off"))


@frame.page
async def again(request: Request, visitor: Visitor) -> Response:
    await sales.again(visitor.id, request.path_params["sale_id"])
    return frame.go(request, "/sales", Notice("It waits in the queue again."))


@frame.page
async def as_csv(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    fields = {"content-disposition": 'attachment; filename="sales.csv"'}
    return Response(await sales.as_csv(visitor.id), 200, fields, media_type="text/csv; charset=utf-8")


routes = [
    Route("/sales", show),
    Route("/sales", add, methods=["POST"]),
    Route("/sales/sales.csv", as_csv),
    Route("/sales/{sale_id}/skip", skip, methods=["POST"]),
    Route("/sales/{sale_id}/again", again, methods=["POST"]),
]
