"""In and out: register with a confirmed address, log in, and choose a new password."""

from __future__ import annotations

from math import ceil

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import people
from admissions.desk.people import PASSWORD_LEAST, NotLoggedIn, folded
from admissions.desk.refusals import Invalid, Refusal
from admissions.domain.roles import STAFF
from admissions.web.limits import ACCOUNT
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web import ProblemError, count_request, session_of
from holdfast.web.pages import Form


def _next(request: Request) -> str:
    return frame.inner_path(request, request.query_params.get("next", "/")[:500])


async def show_register(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    return _register_page(request, Form())


def _register_page(request: Request, form: Form, status: int = 200) -> Response:
    return frame.render(request, "register.html", {"form": form, "least": PASSWORD_LEAST}, status=status)


async def register(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    if not await _counted(request, visitor, form):
        return _register_page(request, form, 429)
    try:
        await people.register(form["mail"], form["password"], form["name"], visitor.language)
    except Invalid as refusal:
        frame.add_wrongs(form, visitor, refusal)
        return _register_page(request, form, 422)
    return frame.render(request, "sent.html", {"title": "registered_title", "text": "registered_text", "mail": form["mail"].strip()})  # fmt: skip


async def show_confirm(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    """A button: what opens links in mails to look at them does not confirm anything."""
    return frame.render(request, "confirm.html", {"key": request.query_params.get("key", "")[:200]})


async def confirm(request: Request, visitor: Visitor) -> Response:
    await people.confirm((await frame.read(request))["key"][:200])
    return frame.go(request, "/login" if visitor.person is None else "/account", Notice(say(visitor.language, "confirmed")))  # fmt: skip


async def show_login(request: Request, visitor: Visitor) -> Response:
    if visitor.person is not None:
        return frame.go(request, _home(visitor))
    return _login_page(request, Form({"next": _next(request)}))


def _login_page(request: Request, form: Form, status: int = 200) -> Response:
    return frame.render(
        request, "login.html", {"form": form, "is_next": form["next"] not in ("", "/")}, status=status
    )


async def log_in(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    if not await _counted(request, visitor, form):
        return _login_page(request, form, 429)
    try:
        person = await people.log_in(form["mail"], form["password"])
    except NotLoggedIn as refusal:
        form.error("mail", frame.refused(visitor, refusal))
        return _login_page(request, form, 422)
    await session_of(request).login(person.id)
    asked = frame.inner_path(request, form["next"])
    home = "/desk" if person.role in STAFF else "/applications"
    return frame.go(request, home if asked == "/" else asked)


def _home(visitor: Visitor) -> str:
    return "/desk" if visitor.is_staff else "/applications"


async def log_out(request: Request, visitor: Visitor) -> Response:
    await session_of(request).logout()
    return frame.pages.redirect(request, "/", tell=say(visitor.language, "logged_out"))


async def show_forgot(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    return frame.render(request, "forgot.html", {"form": Form()})


async def forgot(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    if not await _counted(request, visitor, form):
        return frame.render(request, "forgot.html", {"form": form}, status=429)
    await people.ask_for_reset(form["mail"])
    return frame.render(request, "sent.html", {"title": "registered_title", "text": "forgot_done", "mail": form["mail"].strip()})  # fmt: skip


async def show_reset(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    return _reset_page(request, Form({"key": request.query_params.get("key", "")[:200]}))


def _reset_page(request: Request, form: Form, status: int = 200) -> Response:
    return frame.render(request, "reset.html", {"form": form, "least": PASSWORD_LEAST}, status=status)


async def reset(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    try:
        await people.reset(form["key"][:200], form["password"])
    except Invalid as refusal:
        frame.add_wrongs(form, visitor, refusal)
        return _reset_page(request, form, 422)
    except Refusal as refusal:
        return frame.go(request, "/forgot", Notice(frame.refused(visitor, refusal), "late"))
    return frame.go(request, "/login", Notice(say(visitor.language, "reset_done")))


async def _counted(request: Request, visitor: Visitor, form: Form) -> bool:
    """Whether this address may be tried once more; else the form says when."""
    try:
        await count_request(request, ACCOUNT, folded(form["mail"])[:254])
    except ProblemError as error:
        seconds = error.problem.retry_after or 60
        unit, number = ("seconds", seconds) if seconds < 60 else ("minutes", ceil(seconds / 60))
        form.error("mail", say(visitor.language, "too_often", say(visitor.language, unit, number)))
        return False
    return True


routes = [
    frame.at("GET /register", show_register), frame.at("POST /register", register),
    frame.at("GET /confirm", show_confirm), frame.at("POST /confirm", confirm),
    frame.at("GET /login", show_login), frame.at("POST /login", log_in), frame.at("POST /logout", log_out),
    frame.at("GET /forgot", show_forgot), frame.at("POST /forgot", forgot),
    frame.at("GET /reset", show_reset), frame.at("POST /reset", reset),
]  # fmt: skip
