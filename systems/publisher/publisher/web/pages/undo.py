"""Undo the last action of this session: its notice has kept what was before."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.web import session_of
from publisher.desk import files, posts, scheduling
from publisher.desk.bulk import Result, many
from publisher.web.pages import frame
from publisher.web.pages.visitor import Visitor


@frame.page
async def undo(request: Request, visitor: Visitor) -> Response:
    kept = session_of(request).pop(frame.UNDO, None)
    if not isinstance(kept, dict):
        return frame.back(request, frame.Notice("There is nothing left to undo.", "late"))
    results = await undone(visitor.id, kept)
    failed = [each.words for each in results if not each.ok]
    if failed:
        return frame.back(request, frame.Notice(f"{len(failed)} of {len(results)} could not be undone.", "late", lines=failed))  # fmt: skip
    return frame.back(request, frame.Notice("Undone: it is as it was before."))


async def undone(artist_id: str, kept: dict[str, Any]) -> list[Result]:
    """Each post by itself, as when it was done."""
    before = {str(post_id): value for post_id, value in kept["items"]}

    async def one(post_id: str) -> None:
        value = before[post_id]
        match kept["verb"]:
            case "move":
                await scheduling.move(artist_id, post_id, float(value))
            case "draft":
                await scheduling.to_draft(artist_id, post_id)
            case "schedule":
                await scheduling.schedule(artist_id, post_id, float(value))
            case "edit":
                await posts.edit(artist_id, post_id, value)
            case "restore":
                await files.restore(artist_id, post_id)

    return await many(list(before), one)


routes = [Route("/undo", undo, methods=["POST"])]
