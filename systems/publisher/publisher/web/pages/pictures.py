"""Previews of the artist's own files, for the artist's own browser."""

from __future__ import annotations

from sqlalchemy import select
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast import within
from holdfast.web import session_of
from publisher.core import hf
from publisher.tables import File
from publisher.web.pages import frame

_YEAR = 365 * 86_400
_LARGEST = 8 * 1024 * 1024


async def picture(request: Request) -> Response:
    """What is kept under an id never changes: the browser asks once."""
    frame.check_address(request)
    who, file_id = session_of(request).principal, request.path_params["file_id"]
    key = await _preview(who, file_id) if who else None
    if who is None or key is None:
        raise HTTPException(404, "There is no such picture.")
    tag = f'"{file_id}"'
    fields = {"cache-control": f"private, max-age={_YEAR}, immutable", "etag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(None, 304, fields)
    with within(tenant=who):
        known = await hf.blobs.get(key)
        if known is None or known.size > _LARGEST:
            raise HTTPException(404, "There is no such picture.")
        content = await hf.blobs.read(key)
    return Response(content, 200, fields, media_type=known.content_type)


async def _preview(artist_id: str, file_id: str) -> str | None:
    async with hf.session() as session:
        found: str | None = await session.scalar(
            select(File.preview_key).where(File.id == file_id, File.artist_id == artist_id)
        )
        return found


routes = [Route("/pictures/{file_id}", picture)]
