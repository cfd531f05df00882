"""Webhooks of Stripe: the signature over the raw body is their right. Answered at once, and handled by a job."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request

from admissions.core import settings
from admissions.outside.errors import Refused
from admissions.web.api.base import Out, check
from admissions.work import hearing
from holdfast.web import Problem, ProblemError, request_tx

router = APIRouter(tags=["webhooks"], dependencies=[Depends(check)])


class Taken(Out):
    """`isNew`: it had not come before."""

    is_new: bool


@router.post("/webhooks/stripe")
async def take(request: Request) -> Taken:
    body, signature = await request.body(), request.headers.get("stripe-signature", "")
    try:
        async with request_tx(request) as tx:
            return Taken(is_new=await hearing.take(body, signature, settings.stripe_hook.reveal(), tx))
    except Refused:
        # Nobody learns how near it was.
        problem = Problem(status=400, title="This is no webhook of Stripe", code="SIGNATURE_WRONG")
        raise ProblemError(problem) from None
