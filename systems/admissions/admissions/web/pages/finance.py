"""Payments for finance: what is paid, declined or odd, money that belongs to nobody, and giving it back."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import finance
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.pages.queue import place_of
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web.pages import Cursor

TABS = ("all", "odd", "declined", "confirming", "paid", "refunded", "open", "unmatched")
LOOKS = {
    "open": "wait",
    "confirming": "run",
    "declined": "late",
    "paid": "ok",
    "refunded": "off",
    "odd": "unknown",
    "none": "off",
}
_AMOUNT = re.compile(r"\d{1,7}([.,]\d{2})?")


async def show(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    tab = request.query_params.get("show", "all")
    tab = tab if tab in TABS else "all"
    values: dict[str, Any] = {
        "tab": tab,
        "tabs": TABS,
        "looks": LOOKS,
        "unmatched": await finance.unmatched(),
    }
    if tab == "unmatched":
        return frame.render(request, "desk_unmatched.html", values)
    cursor = Cursor(request, size=50)
    place = place_of(cursor.key)
    before, after = (None, place) if cursor.is_backwards else (place, None)
    found = await finance.payments(
        state=None if tab == "all" else tab, before=before, after=after, limit=cursor.limit
    )
    values["rows"] = cursor.rows(found, key=lambda each: (each.changed_at, each.application_id))
    return frame.render(request, "desk_payments.html", values)


async def refund(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    text = form["amount"].strip()
    if not _AMOUNT.fullmatch(text):
        return frame.back(request, Notice(say(visitor.language, "refund_wrong"), "late"))
    amount = int(re.sub(r"[.,]", "", text)) if re.search(r"[.,]", text) else int(text) * 100
    await finance.refund(visitor.id, request.path_params["application_id"], amount, form["reason"])
    return frame.back(request, Notice(say(visitor.language, "refund_begun"), "run"))


routes = [
    frame.at("GET /desk/payments", show),
    frame.at("POST /desk/payments/{application_id}/refund", refund),
]
