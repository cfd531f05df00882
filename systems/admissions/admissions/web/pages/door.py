"""The first page: what can be applied for, and until when; and the language."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import applying, people
from admissions.domain.deadlines import Door
from admissions.domain.states import State
from admissions.web.pages import frame
from admissions.web.visitor import CHOSEN, Visitor
from admissions.web.words import NAMES
from holdfast.web import session_of

_ORDER = (Door.OPEN, Door.GRACE, Door.NOT_YET, Door.CLOSED)


async def start(request: Request, visitor: Visitor) -> Response:
    choices = await applying.choices()
    mine = {}
    if visitor.person is not None and not visitor.is_staff:
        mine = {
            draft.term_id: draft
            for draft, _, _ in await applying.mine(visitor.id)
            if draft.state != State.WITHDRAWN
        }
    shown = [each for each in choices if each.door is not Door.CLOSED or each.term_id in mine]
    shown.sort(key=lambda each: _ORDER.index(each.door))
    return frame.render(request, "start.html", {"choices": shown, "mine": mine})


async def language(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    chosen = form["language"]
    if chosen in NAMES:
        if visitor.person is not None:
            await people.set_language(visitor.id, chosen)
        session_of(request)[CHOSEN] = chosen
    return frame.pages.redirect(request, frame.inner_path(request, form["path"]), back=form["back"])


routes = [frame.at("GET /", start), frame.at("POST /language", language)]
