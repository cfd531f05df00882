"""The account: name, address, password, language, where one is logged in, a copy of all data, and the end."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response

from admissions.desk import account, people
from admissions.desk.refusals import NotHere
from admissions.web.api.base import Line, Me, Out, Strict, check
from admissions.web.api.session import Done, Secret, Who
from holdfast.web import request_tx, session_of

router = APIRouter(prefix="/api/account", tags=["account"], dependencies=[Depends(check)])
LoginName = Annotated[str, Path(pattern="^[0-9A-Za-z_-]{1,100}$")]


class Changes(Strict):
    """What is left out stays as it is."""

    name: Line | None = None
    language: Line | None = None


class NewAddress(Strict):
    mail: Line


class NewPassword(Strict):
    old_password: Secret
    new_password: Secret


class Goodbye(Strict):
    """The password, so that nobody does it by a slip."""

    password: Secret


class Login(Out):
    name: str
    address: str | None
    agent: str | None
    is_this: bool
    created_at: float
    seen_at: float


@router.get("")
async def get_account(me: Me) -> Who:
    return Who.model_validate(me)


@router.patch("")
async def change_account(request: Request, me: Me, given: Changes) -> Who:
    async with request_tx(request) as tx:
        if given.name is not None:
            await account.set_name(me.id, given.name, tx=tx)
        if given.language is not None:
            await people.set_language(me.id, given.language, tx=tx)
        return Who.model_validate(await people.get(me.id, tx=tx))


@router.post("/mail", status_code=202)
async def change_mail(request: Request, me: Me, given: NewAddress) -> Done:
    """It counts when the link in the mail to it was opened."""
    async with request_tx(request) as tx:
        await people.ask_for_change(me.id, given.mail, tx=tx)
    return Done()


@router.post("/password", status_code=204, response_class=Response)
async def change_password(request: Request, me: Me, given: NewPassword) -> Response:
    """All other logins end in the same commit."""
    others = session_of(request).end_other_logins
    await account.change_password(me.id, given.old_password, given.new_password, end_others=others)
    return Response(status_code=204)


@router.get("/data")
async def data(me: Me) -> dict[str, Any]:
    """All that is kept of you."""
    return await account.copy_of_data(me.id)


@router.post("/delete", status_code=204, response_class=Response)
async def delete(request: Request, me: Me, given: Goodbye) -> Response:
    await account.delete(me.id, given.password)
    await session_of(request).logout()
    return Response(status_code=204)


@router.get("/logins")
async def logins(request: Request) -> list[Login]:
    return [Login.model_validate(each) for each in await session_of(request).logins()]


@router.delete("/logins/{name}", status_code=204, response_class=Response)
async def end_login(request: Request, name: LoginName) -> Response:
    if not await session_of(request).end_login(name):
        raise NotHere
    return Response(status_code=204)
