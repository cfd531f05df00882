"""Finance: payments, refunds, and money that belongs to no application."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from admissions.desk import finance
from admissions.web.api.base import Cursor, Id, Line, Me, Out, Strict, check, cursor_for, cursor_of
from holdfast.web import request_tx

router = APIRouter(prefix="/api/payments", tags=["payments"], dependencies=[Depends(check)])
_STATES = "^(none|open|confirming|declined|paid|refunded|odd)$"


class Payment(Out):
    """Minor units. `booked` is the sum of its charges and refunds."""

    application_id: str
    number: str
    name: str
    state: str
    amount: int
    currency: str
    booked: int
    changed_at: float


class PaymentPage(Out):
    """`next` is the cursor of the page behind this one; null: there is none."""

    payments: list[Payment]
    next: str | None


class Unmatched(Out):
    reference: str
    intent: str
    amount: int
    currency: str
    at: float


class Refund(Strict):
    amount: Annotated[int, Field(ge=1, le=10**9)]
    reason: Line


class Begun(Out):
    job_id: str


@router.get("")
async def payments(
    state: Annotated[str | None, Query(pattern=_STATES)] = None,
    cursor: Annotated[Cursor, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> PaymentPage:
    """The newest first; those in the state `odd` are to be looked at."""
    found = await finance.payments(state=state, before=cursor_of(cursor), limit=limit + 1)
    page, more = found[:limit], found[limit:]
    last = cursor_for(page[-1].changed_at, page[-1].application_id) if more else None
    return PaymentPage(payments=[Payment.model_validate(each) for each in page], next=last)


@router.get("/unmatched")
async def unmatched() -> list[Unmatched]:
    """Money of an intent that no application has."""
    return [Unmatched.model_validate(each) for each in await finance.unmatched()]


@router.post("/{application_id}/refund", status_code=202)
async def refund(request: Request, me: Me, application_id: Id, given: Refund) -> Begun:
    """It is given back once, and no more than was paid."""
    async with request_tx(request) as tx:
        return Begun(job_id=await finance.refund(me.id, application_id, given.amount, given.reason, tx=tx))
