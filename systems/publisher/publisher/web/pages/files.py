"""Files: how much room they take, the largest, and what was deleted and can be had back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from publisher.desk import files
from publisher.web.pages import frame
from publisher.web.pages.frame import Notice
from publisher.web.pages.visitor import Visitor


@frame.page
async def show(request: Request, visitor: Visitor) -> Response:
    values = {
        "usage": await files.usage(visitor.id),
        "largest": await files.largest(visitor.id, 20),
        "deleted": await files.deleted(visitor.id),
        "restorable": files.RESTORABLE,
    }
    return frame.render(request, "files.html", values)


@frame.page
async def delete(request: Request, visitor: Visitor) -> Response:
    found = await files.delete(visitor.id, request.path_params["file_id"])
    undo = {"verb": "restore", "items": [[found.id, None]]}
    return frame.go(
        request,
        "/files",
        Notice(f"{found.name} is deleted. It can be had back for 7 days.", "off", undo=undo),
    )


@frame.page
async def restore(request: Request, visitor: Visitor) -> Response:
    found = await files.restore(visitor.id, request.path_params["file_id"])
    return frame.go(request, f"/posts/{found.post_id}", Notice(f"{found.name} is back."))


@frame.page
async def download(request: Request, visitor: Visitor) -> Response:
    """The file itself, by a link that is good for a quarter of an hour."""
    return RedirectResponse((await files.link(visitor.id, request.path_params["file_id"])).url, 303)


routes = [
    Route("/files", show),
    Route("/files/{file_id}", download),
    Route("/files/{file_id}/delete", delete, methods=["POST"]),
    Route("/files/{file_id}/restore", restore, methods=["POST"]),
]
