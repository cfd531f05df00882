"""The sale queue: for the artist, and by API key for the program outside that sets prices."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from holdfast.web import request_tx
from publisher.desk import sales
from publisher.web.api.base import Artist, Id, KeyArtist, Line, RowId, RowIds, Strict, Text
from publisher.web.api.shapes import Results, told

router = APIRouter(prefix="/api/sales", tags=["sale queue"])
Token = Annotated[int, Field(ge=0, le=2**53)]


class Sale(BaseModel):
    """`price` is in cents; `token` names the lease."""

    id: str
    post_id: str
    title: str
    deviationid: str | None
    url: str | None
    price: int
    preset_id: str | None
    state: str
    attempts: int
    client: str
    token: int
    leased_until: float | None
    error: str
    made_at: float
    ended_at: float | None


class ByHand(Strict):
    post_ids: RowIds
    preset_id: RowId | None = None


class Client(Strict):
    """Who asks; it may be any name."""

    client: Line


class Lease(Strict):
    token: Token


class Failure(Lease):
    error: Text = ""


class Next(BaseModel):
    """Nothing waits: null."""

    sale: Sale | None


@router.get("")
async def list_sales(
    artist: KeyArtist,
    state: Annotated[str | None, Query(pattern=f"^({'|'.join(sales.STATES)})$")] = None,
    before: Annotated[str | None, Query(pattern="^[0-9a-f]{32}$")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> list[Sale]:
    """The newest first; `before` is the id of the last one that you have."""
    found = await sales.listing(artist, state=state, before=before, limit=limit)
    return [Sale(**asdict(each)) for each in found]


@router.get("/counts")
async def count_sales(artist: KeyArtist) -> dict[str, int]:
    return await sales.counts(artist)


@router.get("/csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
async def sales_as_csv(artist: KeyArtist) -> Response:
    headers = {"content-disposition": 'attachment; filename="sales.csv"'}
    return Response(await sales.as_csv(artist), media_type="text/csv; charset=utf-8", headers=headers)


@router.post("")
async def add_by_hand(artist: Artist, given: ByHand) -> Results:
    return told(await sales.by_hand(artist, given.post_ids, given.preset_id))


@router.post("/next")
async def next_sale(artist: KeyArtist, given: Client) -> Next:
    """The oldest that waits, for this client alone until its lease ends."""
    found = await sales.next(artist, given.client)
    return Next(sale=None if found is None else Sale(**asdict(found)))


@router.post("/{sale_id}/complete")
async def complete_sale(request: Request, artist: KeyArtist, sale_id: Id, given: Lease) -> Sale:
    async with request_tx(request) as tx:
        return Sale(**asdict(await sales.complete(artist, sale_id, given.token, tx=tx)))


@router.post("/{sale_id}/fail")
async def fail_sale(request: Request, artist: KeyArtist, sale_id: Id, given: Failure) -> Sale:
    async with request_tx(request) as tx:
        return Sale(**asdict(await sales.fail(artist, sale_id, given.token, given.error, tx=tx)))


@router.post("/{sale_id}/skip", status_code=204)
async def skip_sale(artist: Artist, sale_id: Id) -> Response:
    await sales.skip(artist, sale_id)
    return Response(status_code=204)


@router.post("/{sale_id}/again", status_code=204)
async def sell_again(artist: Artist, sale_id: Id) -> Response:
    """Back into the queue, with three new tries."""
    await sales.again(artist, sale_id)
    return Response(status_code=204)
