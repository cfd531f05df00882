"""API keys: make one, see them, revoke them. The secret is in the answer that makes it, and nowhere else."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from holdfast.web import request_tx
from publisher.desk import keys
from publisher.web.api.base import Artist, Id, Line, Strict

router = APIRouter(prefix="/api/keys", tags=["API keys"])


class Key(BaseModel):
    id: str
    name: str
    prefix: str
    made_at: float
    used_at: float | None
    revoked_at: float | None


class NewKey(Key):
    secret: str


class Name(Strict):
    name: Line


@router.get("")
async def list_keys(artist: Artist) -> list[Key]:
    return [Key(**asdict(each)) for each in await keys.listing(artist)]


@router.post("", status_code=201)
async def make_key(artist: Artist, given: Name) -> NewKey:
    """This route takes no Idempotency-Key: answers to those are kept for three days, and a secret is not."""
    made = await keys.make(artist, given.name)
    return NewKey(**asdict(made.key), secret=made.secret)


@router.post("/{key_id}/revoke")
async def revoke_key(request: Request, artist: Artist, key_id: Id) -> Key:
    """It opens nothing from now on."""
    async with request_tx(request) as tx:
        return Key(**asdict(await keys.revoke(artist, key_id, tx=tx)))


@router.delete("/{key_id}", status_code=204)
async def delete_key(request: Request, artist: Artist, key_id: Id) -> Response:
    async with request_tx(request) as tx:
        await keys.delete(artist, key_id, tx=tx)
    return Response(status_code=204)
