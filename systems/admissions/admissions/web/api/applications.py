"""One's own applications: begin, save as one types, read, pay, withdraw."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Scope

from admissions.desk import applying, paying, status, story
from admissions.domain.forms import STEPS
from admissions.web.api.base import Id, Line, Me, Out, RowId, Strict, Text, check
from admissions.web.api.shapes import Application, Brief, Programme, Status, shown
from holdfast.web import request_tx

router = APIRouter(tags=["applications"], dependencies=[Depends(check)])
_DRAFT = "/api/applications/{application_id}"
Step = Annotated[str, Path(pattern=f"^({'|'.join(STEPS)})$")]


class Choice(Strict):
    term_id: RowId


class Begun(Out):
    id: str


class Typed(Strict):
    """What was typed in a step, right or not. With `version`, only when nobody has changed the draft since that one."""

    version: Annotated[int, Field(ge=1, le=2**53)] | None = None
    name: Text | None = None
    birth: Line | None = None
    phone: Line | None = None
    address: Text | None = None
    statement: Text | None = None
    declared: bool | None = None


class Saved(Out):
    version: int
    changed_at: float


class Card(Strict):
    """`method` is the name that the provider's own form has given to a card: its number never comes here."""

    method: Annotated[str, Field(pattern="^pm_[A-Za-z0-9_]{1,100}$")]


class PayPage(Out):
    """`state`: none, open, confirming, declined, paid, refunded, odd."""

    application_id: str
    number: str
    amount: int
    currency: str
    state: str
    words: str


class Goodbye(Strict):
    reason: Annotated[Line, Field(max_length=300)] = ""


@router.get("/api/programmes", tags=["programmes"])
async def programmes() -> list[Programme]:
    return [Programme.model_validate(each) for each in await applying.choices()]


@router.get("/api/applications")
async def mine(me: Me) -> list[Brief]:
    """The newest first."""
    return [
        Brief(
            id=draft.id, term_id=draft.term_id, state=draft.state, version=draft.version,
            changed_at=draft.changed_at, programme=programme, term=term,
        )
        for draft, programme, term in await applying.mine(me.id)
    ]  # fmt: skip


@router.post("/api/applications")
async def begin(request: Request, me: Me, given: Choice) -> Begun:
    """A draft, or the application for this term that is there already."""
    async with request_tx(request) as tx:
        return Begun(id=await applying.begin(me.id, given.term_id, tx=tx))


@router.get(_DRAFT)
async def get_application(me: Me, application_id: Id) -> Application:
    return shown(await story.of(me.id, application_id))


@router.patch(f"{_DRAFT}/{{step}}")
async def save(request: Request, me: Me, application_id: Id, step: Step, given: Typed) -> Saved:
    answers = given.model_dump(exclude_none=True, exclude={"version"})
    async with request_tx(request) as tx:
        draft = await applying.save(me.id, application_id, step, answers, version=given.version, tx=tx)
    return Saved(version=draft.version, changed_at=draft.changed_at)


@router.get(f"{_DRAFT}/status")
async def get_status(me: Me, application_id: Id) -> Status:
    """Whoever has just submitted sees it here."""
    return Status.model_validate(await status.own(me.id, application_id))


class ForPrograms(APIRoute):
    """A browser that loads a page is let through, to the page of the same address."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        told = Headers(scope=scope).get("accept", "") if scope["type"] == "http" else ""
        if "text/html" in told and "json" not in told:
            return Match.NONE, {}
        return super().matches(scope)


router.add_api_route(
    "/applications/{application_id}/status",
    get_status,
    methods=["GET"],
    operation_id="status_by_url",
    route_class_override=ForPrograms,
)


# --- the fee ---


@router.get(f"{_DRAFT}/payment")
async def get_payment(me: Me, application_id: Id) -> PayPage:
    return PayPage.model_validate(await paying.page(me.id, application_id))


@router.post(f"{_DRAFT}/payment", status_code=202, response_class=Response)
async def pay(request: Request, me: Me, application_id: Id, given: Card) -> Response:
    """Taken once, however often it is sent; while it is being confirmed no other begins."""
    async with request_tx(request) as tx:
        await paying.pay(me.id, application_id, given.method, tx=tx)
    return Response(status_code=202)


@router.post(f"{_DRAFT}/withdraw", status_code=202, response_class=Response)
async def withdraw(request: Request, me: Me, application_id: Id, given: Goodbye) -> Response:
    """What was paid is given back, and the files go. There is no way back."""
    async with request_tx(request) as tx:
        await applying.withdraw(me.id, application_id, given.reason, tx=tx)
    return Response(status_code=202)
