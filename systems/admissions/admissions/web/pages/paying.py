"""The pay page: one payment, and while it is being confirmed no second one is offered."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from functools import cache

from starlette.requests import Request
from starlette.responses import Response

from admissions.core import settings
from admissions.core import stripe as guard
from admissions.desk import paying, story
from admissions.desk.refusals import TooLate
from admissions.domain.states import State
from admissions.outside.errors import Declined, OutsideError
from admissions.outside.payments import Payments
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.pages.slow import slow_of
from admissions.web.pages.standing import declined, why_declined
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.errors import HoldfastError
from holdfast.web.pages import Form

TRY = "4242 4242 4242 4242"
_UNTIL = re.compile(r"(0?[1-9]|1[0-2])\s*/\s*(?:20)?(\d\d)")
_FIELDS = {"incorrect_number": "number", "incorrect_cvc": "code", "expired_card": "until"}


@cache
def _client() -> Payments:
    return Payments(settings)


def takes_cards() -> bool:
    """Numbers of real cards must not pass through here."""
    return settings.stripe_key.reveal().startswith("sk_test")


async def show(request: Request, visitor: Visitor) -> Response:
    its = await story.of(visitor.id, request.path_params["application_id"])
    if its.state is State.DRAFT:
        return frame.go(request, f"/applications/{its.id}/form")
    return await _draw(request, visitor, its, Form())


async def _draw(
    request: Request, visitor: Visitor, its: story.Story, form: Form, status: int = 200
) -> Response:
    values = {
        "its": its, "form": form, "takes_cards": takes_cards(), "try_card": TRY, "why": why_declined(its, visitor.language),
        "paid_at": its.at("paid"), "declined_at": its.at("payment_declined"), "is_over": its.state is State.WITHDRAWN, "slow": await slow_of(its),
    }  # fmt: skip
    return frame.render(request, "pay.html", values, status=status)


async def pay(request: Request, visitor: Visitor) -> Response:
    """What is wrong with the card is told beside its field. From the moment of confirming on, only Stripe knows, and is asked."""
    its = await story.of(visitor.id, request.path_params["application_id"])
    form = await frame.read(request)
    where = f"/applications/{its.id}/pay"
    if its.payment.state not in ("open", "declined") or not takes_cards():
        return frame.go(request, where)
    month, year = _checked(form, visitor)
    method = await _method(form, visitor, month, year) if form.ok else ""
    if not form.ok:
        return await _draw(request, visitor, its, _without_card(form), 422)
    try:
        await paying.pay(visitor.id, its.id, method)
    except TooLate as refusal:  # the same page in another window
        return frame.go(request, where, Notice(frame.refused(visitor, refusal), "late"))
    return frame.go(request, where)


def _checked(form: Form, visitor: Visitor) -> tuple[int, int]:
    if not 12 <= len(_digits(form["number"])) <= 19:
        form.error("number", say(visitor.language, "card_number_wrong"))
    found, now = _UNTIL.fullmatch(form["until"].strip()), datetime.fromtimestamp(visitor.now, UTC)
    month, year = (int(found[1]), 2000 + int(found[2])) if found else (0, 0)
    if (year, month) < (now.year, now.month):
        form.error("until", say(visitor.language, "card_until_wrong"))
    if not re.fullmatch(r"\d{3,4}", form["code"].strip()):
        form.error("code", say(visitor.language, "card_code_wrong"))
    return month, year


def _digits(text: str) -> str:
    return "".join(each for each in text if each.isascii() and each.isdigit())


async def _method(form: Form, visitor: Visitor, month: int, year: int) -> str:
    """Nothing is taken by this call."""
    try:
        method: str = await guard.call(
            asyncio.to_thread, _client().method, _digits(form["number"]), month, year, form["code"].strip()
        )
    except Declined as refusal:
        why = say(visitor.language, "card_refused", declined(refusal.words, visitor.language))
        form.error(_FIELDS.get(refusal.code, "number"), why)
        return ""
    except (OutsideError, HoldfastError):
        form.error("number", say(visitor.language, "card_busy"))
        return ""
    return method


def _without_card(form: Form) -> Form:
    """Of a card only the month goes back to the page."""
    kept = Form({"until": form["until"]})
    for name, words in form.errors.items():
        kept.error(name, words)
    return kept


_OWN = "/applications/{application_id}/pay"
routes = [frame.at(f"GET {_OWN}", show), frame.at(f"POST {_OWN}", pay)]
