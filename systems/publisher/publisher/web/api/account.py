"""The account: what an artist sets, the login at DeviantArt, where somebody is logged in, exports, and leaving."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from holdfast import Tx
from holdfast.web import request_tx, session_of
from publisher.desk import account, exports, scheduling
from publisher.desk.refusals import NotHere
from publisher.web.api.base import Artist, Id, Line, Strict
from publisher.web.api.files import Link

router = APIRouter(prefix="/api/account", tags=["account"])


LoginName = Annotated[str, Path(pattern="^[0-9A-Za-z_-]{1,100}$")]


class Token(BaseModel):
    state: str
    why: str
    days: float
    until: float


class Account(BaseModel):
    id: str
    username: str
    mail: str | None
    zone: str
    jitter: int
    notices: dict[str, bool]
    is_on: bool
    post_count: int
    made_at: float
    token: Token


class Settings(Strict):
    """What is left out stays as it is."""

    zone: Line | None = None
    jitter: Annotated[int, Field(ge=0, le=account.JITTER_MOST)] | None = None
    mail: Line | None = None
    notices: dict[Line, bool] | None = None


class Switch(Strict):
    is_on: bool


class Goodbye(Strict):
    """The name of the account, so that nobody does it by a slip."""

    username: Line


class SessionOut(BaseModel):
    """`csrf` goes with every request that changes something, as the header X-CSRF-Token."""

    artist_id: str | None
    csrf: str


class Export(BaseModel):
    id: str
    size: int | None
    made_at: float
    ready_at: float | None


class Login(BaseModel):
    name: str
    address: str | None
    agent: str | None
    is_this: bool
    begun_at: float
    seen_at: float


@router.get("/session")
async def get_session(request: Request) -> SessionOut:
    """Who is logged in in this browser, if anybody."""
    return SessionOut(artist_id=session_of(request).principal, csrf=request.scope["holdfast.csrf"]())


@router.get("")
async def get_account(artist: Artist) -> Account:
    return await _shown(artist)


@router.patch("")
async def set_account(request: Request, artist: Artist, given: Settings) -> Account:
    async with request_tx(request) as tx:
        if given.zone is not None:
            await account.set_zone(artist, given.zone, tx=tx)
        if given.jitter is not None:
            await account.set_jitter(artist, given.jitter, tx=tx)
        if "mail" in given.model_fields_set:
            await account.set_mail(artist, given.mail, tx=tx)
        if given.notices is not None:
            await account.set_notices(artist, given.notices, tx=tx)
        return await _shown(artist, tx)


@router.post("/switch")
async def switch(artist: Artist, given: Switch) -> Account:
    """Everything rests, or goes on."""
    await scheduling.switch(artist, given.is_on)
    return await _shown(artist)


@router.post("/disconnect", status_code=202, response_class=Response)
async def disconnect(request: Request, artist: Artist) -> Response:
    """Nothing is called in your name any more; DeviantArt is told to forget the tokens."""
    async with request_tx(request) as tx:
        await account.disconnect(artist, tx=tx)
    return Response(status_code=202)


@router.post("/leave", status_code=202, response_class=Response)
async def leave(request: Request, artist: Artist, given: Goodbye) -> Response:
    """Delete the account with all posts and files. It begins at once, and cannot be stopped."""
    await account.leave(artist, username=given.username)
    await session_of(request).logout_everywhere()
    return Response(status_code=202)


# --- exports ---


@router.get("/exports")
async def list_exports(artist: Artist) -> list[Export]:
    return [_export(each) for each in await exports.listing(artist)]


@router.post("/exports", status_code=202)
async def ask_for_export(request: Request, artist: Artist) -> Export:
    """Everything as a zip: it is made in the background."""
    async with request_tx(request) as tx:
        return _export(await exports.ask(artist, tx=tx))


@router.get("/exports/{export_id}/link")
async def link_to_export(artist: Artist, export_id: Id) -> Link:
    found = await exports.link(artist, export_id)
    return Link(url=found.url, expires=found.expires)


# --- logins here ---


@router.get("/logins")
async def list_logins(request: Request, artist: Artist) -> list[Login]:  # noqa: ARG001  somebody must be logged in
    return [
        Login(
            name=each.name, address=each.address, agent=each.agent, is_this=each.is_this,
            begun_at=each.created_at, seen_at=each.seen_at,
        )
        for each in await session_of(request).logins()
    ]  # fmt: skip


@router.delete("/logins/{name}", status_code=204)
async def end_login(
    request: Request,
    artist: Artist,  # noqa: ARG001
    name: LoginName,
) -> Response:
    if not await session_of(request).end_login(name):
        raise NotHere("login")
    return Response(status_code=204)


@router.post("/logout-everywhere", status_code=204)
async def logout_everywhere(request: Request, artist: Artist) -> Response:  # noqa: ARG001
    await session_of(request).logout_everywhere()
    return Response(status_code=204)


async def _shown(artist: str, tx: Tx | None = None) -> Account:
    row = await account.get(artist, tx=tx)
    token = await account.token_state(artist, tx=tx)
    return Account(
        id=row.id, username=row.username, mail=row.mail, zone=row.zone, jitter=row.jitter, notices=row.wanted,
        is_on=row.is_on, post_count=row.post_count, made_at=row.made_at,
        token=Token(state=token.state, why=token.why, days=token.days, until=token.until),
    )  # fmt: skip


def _export(row: exports.ExportRow) -> Export:
    told = asdict(row)
    return Export(**{name: told[name] for name in Export.model_fields})
