"""Settings: zone, mails, where one is logged in, the export, and the ways out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from zoneinfo import available_timezones

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from holdfast.web import session_of
from holdfast.web.pages import Form
from publisher.desk import account, exports
from publisher.desk.refusals import Fault, Invalid
from publisher.web.pages import frame
from publisher.web.pages.frame import Notice
from publisher.web.pages.numbers import whole
from publisher.web.pages.visitor import Visitor
from publisher.work.mails import KINDS

_PLACES = (
    "Africa/",
    "America/",
    "Antarctica/",
    "Asia/",
    "Atlantic/",
    "Australia/",
    "Europe/",
    "Indian/",
    "Pacific/",
)
ZONES = ("UTC", *sorted(name for name in available_timezones() if name.startswith(_PLACES)))
_BROWSERS = (("Edg/", "Edge"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "Mac"),
    ("Linux", "Linux"),
)
Act = Callable[[Visitor, Form], Awaitable[str]]


@frame.page
async def show(request: Request, visitor: Visitor) -> Response:
    return await _draw(request, visitor, Form(), 200)


async def _draw(request: Request, visitor: Visitor, form: Form, status: int) -> Response:
    artist = await account.get(visitor.id)
    wanted = {kind: artist.wanted.get(kind, True) for kind in KINDS}
    first = Form(
        {
            "zone": artist.zone,
            "jitter": str(artist.jitter // 60),
            "mail": artist.mail or "",
            "notices": [kind for kind, wants in wanted.items() if wants],
        }
    )
    shown = Form({name: first.all(name) for name in first} | {name: form.all(name) for name in form})
    for name, words in form.errors.items():
        shown.error(name, words)
    values = {
        "form": shown,
        "kinds": KINDS,
        "zones": [(name, name.replace("_", " ")) for name in ZONES],
        "token": await account.token_state(visitor.id),
        "exports": await exports.listing(visitor.id),
        "logins": [(each, browser(each.agent)) for each in await session_of(request).logins()],
    }
    return frame.render(request, "settings.html", values, status=status)


def browser(agent: str | None) -> str:
    """Firefox on Windows: as much of it as tells one's own browsers apart."""
    told = agent or ""
    name = next((word for sign, word in _BROWSERS if sign in told), "A browser")
    system = next((word for sign, word in _SYSTEMS if sign in told), "")
    return f"{name} on {system}" if system else name


def _saving(act: Act) -> Callable[[Request], Awaitable[Response]]:
    @frame.page
    async def route(request: Request, visitor: Visitor) -> Response:
        form = await frame.read(request)
        try:
            words = await act(visitor, form)
        except Invalid as refusal:
            for fault in refusal.faults:
                form.error(fault.field, fault.words)
            return await _draw(request, visitor, form, 422)
        return frame.go(request, "/settings", Notice(words))

    return route


async def _times(visitor: Visitor, form: Form) -> str:
    minutes = whole(form["jitter"], 0, 5)
    if minutes is None:
        raise Invalid([Fault("jitter", "Write minutes, from 0 to 5.")])
    await account.set_jitter(visitor.id, 60 * minutes)
    await account.set_zone(visitor.id, form["zone"])
    return f"Times are in {form['zone']} from now on. What is scheduled stays at its moment."


async def _mails(visitor: Visitor, form: Form) -> str:
    await account.set_mail(visitor.id, form["mail"])
    await account.set_notices(visitor.id, {kind: kind in form.all("notices") for kind in KINDS})
    return "Saved. Mails go where you said, and only those that you want."


async def _export(visitor: Visitor, form: Form) -> str:  # noqa: ARG001
    await exports.ask(visitor.id)
    return "Your export is being made. It stands here when it is ready."


async def _disconnect(visitor: Visitor, form: Form) -> str:  # noqa: ARG001
    await account.disconnect(visitor.id)
    return "DeviantArt is disconnected. What is scheduled waits until you log in again."


@frame.page
async def download(request: Request, visitor: Visitor) -> Response:
    return RedirectResponse((await exports.link(visitor.id, request.path_params["export_id"])).url, 303)


@frame.page
async def end_login(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    await session_of(request).end_login((await frame.read(request))["login"])
    return frame.go(request, "/settings", Notice("That browser is logged out.", "off"))


@frame.page
async def leave(request: Request, visitor: Visitor) -> Response:
    """The account is deleted by a job; this browser knows nothing of it any more."""
    form = await frame.read(request)
    try:
        await account.leave(visitor.id, username=form["username"])
    except Invalid as refusal:
        for fault in refusal.faults:
            form.error(fault.field, fault.words)
        return await _draw(request, visitor, form, 422)
    await session_of(request).logout_everywhere()
    return frame.pages.redirect(request, "/login", tell="Your account is being deleted, with all that it had")


routes = [
    Route("/settings", show),
    Route("/settings/times", _saving(_times), methods=["POST"]),
    Route("/settings/mails", _saving(_mails), methods=["POST"]),
    Route("/settings/export", _saving(_export), methods=["POST"]),
    Route("/settings/disconnect", _saving(_disconnect), methods=["POST"]),
    Route("/settings/exports/{export_id}", download),
    Route("/settings/logins", end_login, methods=["POST"]),
    Route("/settings/leave", leave, methods=["POST"]),
]
