"""The last look before sending, and the receipt."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import applying, story
from admissions.desk.refusals import Invalid, TooLate
from admissions.domain.states import State
from admissions.web.pages import frame
from admissions.web.pages.form import LIMITS, steps_of
from admissions.web.visitor import Visitor
from holdfast.web.pages import Form


async def check(request: Request, visitor: Visitor) -> Response:
    its = await story.of(visitor.id, request.path_params["application_id"])
    if its.state is not State.DRAFT:
        return frame.go(request, f"/applications/{its.id}/status")
    return await _draw(request, visitor, its)


async def _draw(request: Request, visitor: Visitor, its: story.Story, status: int = 200) -> Response:
    form, steps = Form(), await steps_of(visitor, its)
    for each in steps["wrongs"]:
        form.error(each.field, frame.wrong_words(visitor, each))
    return frame.render(request, "check.html", {"its": its, "form": form, "limits": LIMITS, "step": "check", **steps}, status=status)  # fmt: skip


async def send(request: Request, visitor: Visitor) -> Response:
    """The time of arrival is that of this request. Sent twice, the second one leads to the same application."""
    await frame.read(request)
    found = request.path_params["application_id"]
    try:
        await applying.submit(visitor.id, found, arrived_at=visitor.now)
    except Invalid:
        return await _draw(request, visitor, await story.of(visitor.id, found), 422)
    except TooLate:
        return frame.go(request, f"/applications/{found}/status")
    return frame.go(request, f"/applications/{found}/receipt")


async def receipt(request: Request, visitor: Visitor) -> Response:
    its = await story.of(visitor.id, request.path_params["application_id"])
    if its.state is State.DRAFT:
        return frame.go(request, f"/applications/{its.id}/form")
    return frame.render(request, "receipt.html", {"its": its})


_OWN = "/applications/{application_id}"
routes = [
    frame.at(f"GET {_OWN}/check", check),
    frame.at(f"POST {_OWN}/check", send),
    frame.at(f"GET {_OWN}/receipt", receipt),
]
