"""Who is here: register, confirm the address, log in and out, and choose a new password."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from admissions.desk import people
from admissions.desk.people import Person
from admissions.web.api.base import Line, Out, Strict, check
from admissions.web.limits import ACCOUNT
from admissions.web.visitor import visitor_of
from holdfast.web import count_request, session_of

router = APIRouter(tags=["session"], dependencies=[Depends(check)])
Secret = Annotated[str, Field(max_length=1_000)]


class Newcomer(Strict):
    mail: Line
    password: Secret
    name: Line


class Credentials(Strict):
    mail: Line
    password: Secret


class Address(Strict):
    mail: Line


class Link(Strict):
    """`key` is that of the link in the mail."""

    key: Line


class NewPassword(Link):
    password: Secret


class Who(Out):
    id: str
    mail: str
    name: str
    role: str
    language: str


class SessionOut(Out):
    """`csrf` goes into the header X-CSRF-Token of each request that changes something."""

    person: Who | None
    language: str
    csrf: str


class Done(Out):
    """The same answer for everybody: nobody learns which addresses have an account."""

    sent: bool = True


def _shown(request: Request, person: Person | None, language: str) -> SessionOut:
    who = None if person is None else Who.model_validate(person)
    return SessionOut(person=who, language=language, csrf=request.scope["holdfast.csrf"]())


@router.get("/api/session")
async def get_session(request: Request) -> SessionOut:
    visitor = await visitor_of(request)
    return _shown(request, visitor.person, visitor.language)


@router.post("/api/register", status_code=202)
async def register(request: Request, given: Newcomer) -> Done:
    """A link comes by mail."""
    await count_request(request, ACCOUNT, people.folded(given.mail))
    visitor = await visitor_of(request)
    await people.register(given.mail, given.password, given.name, visitor.language)
    return Done()


@router.post("/api/confirm")
async def confirm(given: Link) -> Who:
    """The link of a registration or of a new address was opened."""
    return Who.model_validate(await people.confirm(given.key))


@router.post("/api/login")
async def log_in(request: Request, given: Credentials) -> SessionOut:
    await count_request(request, ACCOUNT, people.folded(given.mail))
    person = await people.log_in(given.mail, given.password)
    await session_of(request).login(person.id)
    return _shown(request, person, person.language)


@router.post("/api/logout", status_code=204, response_class=Response)
async def log_out(request: Request) -> Response:
    await session_of(request).logout()
    return Response(status_code=204)


@router.post("/api/forgot", status_code=202)
async def forgot(request: Request, given: Address) -> Done:
    await count_request(request, ACCOUNT, people.folded(given.mail))
    await people.ask_for_reset(given.mail)
    return Done()


@router.post("/api/reset")
async def reset(given: NewPassword) -> Who:
    """Whoever had this account open is logged out everywhere."""
    return Who.model_validate(await people.reset(given.key, given.password))
