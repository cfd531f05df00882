"""The account: name, address, password, where somebody is logged in, a copy of the data, and its end."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import account, people
from admissions.desk.people import PASSWORD_LEAST
from admissions.desk.refusals import Invalid
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web import session_of
from holdfast.web.pages import Form


async def show(request: Request, visitor: Visitor) -> Response:
    return await _draw(request, visitor, Form())


async def _draw(request: Request, visitor: Visitor, form: Form, status: int = 200) -> Response:
    assert visitor.person is not None
    own = Form({"name": visitor.person.name})
    logins = [(each, _agent(each.agent or "")) for each in await session_of(request).logins()]
    values = {
        "form": form,
        "own": own if "name" not in form.errors else form,
        "logins": logins,
        "least": PASSWORD_LEAST,
    }
    return frame.render(request, "account.html", values, status=status)


def _agent(text: str) -> str:
    """Firefox on Linux; what says nothing of that kind is not guessed."""
    browser = next((name for mark, name in (("Edg/", "Edge"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari")) if mark in text), "")  # fmt: skip
    system = next((name for mark, name in (("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"), ("Mac OS", "macOS"), ("Linux", "Linux")) if mark in text), "")  # fmt: skip
    return ", ".join(each for each in (browser, system) if each)


async def rename(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    try:
        await account.set_name(visitor.id, form["name"])
    except Invalid as refusal:
        return await _wrong(request, visitor, form, refusal)
    return _done(request, visitor, "saved")


async def new_mail(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    try:
        await people.ask_for_change(visitor.id, form["mail"])
    except Invalid as refusal:
        return await _wrong(request, visitor, form, refusal)
    return _done(request, visitor, "mail_asked", form["mail"].strip())


async def new_password(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    try:
        others = session_of(request).end_other_logins
        await account.change_password(
            visitor.id, form["old_password"], form["new_password"], end_others=others
        )
    except Invalid as refusal:
        return await _wrong(request, visitor, form, refusal)
    return _done(request, visitor, "password_changed")


async def end_login(request: Request, visitor: Visitor) -> Response:
    name, session = (await frame.read(request))["login"], session_of(request)
    if name in {each.name for each in await session.logins()}:
        await session.end_login(name)
    return _done(request, visitor, "login_ended")


async def end_others(request: Request, visitor: Visitor) -> Response:
    await session_of(request).end_other_logins()
    return _done(request, visitor, "login_ended")


async def data(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    found = msgspec.json.format(msgspec.json.encode(await account.copy_of_data(visitor.id)), indent=2)
    fields = {"content-disposition": 'attachment; filename="my-data.json"', "cache-control": "no-store"}
    return Response(found, 200, fields, media_type="application/json")


async def delete(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    try:
        await account.delete(visitor.id, form["password"])
    except Invalid as refusal:
        return await _wrong(request, visitor, form, refusal)
    await session_of(request).logout()
    return frame.pages.redirect(request, "/", tell=say(visitor.language, "deleted"), state="off")


async def _wrong(request: Request, visitor: Visitor, form: Form, refusal: Invalid) -> Response:
    kept = Form({"name": form["name"], "mail": form["mail"]})
    frame.add_wrongs(kept, visitor, refusal)
    return await _draw(request, visitor, kept, 422)


def _done(request: Request, visitor: Visitor, key: str, *values: object) -> Response:
    return frame.go(request, "/account", Notice(say(visitor.language, key, *values)))


routes = [
    frame.at("GET /account", show), frame.at("POST /account/name", rename), frame.at("POST /account/mail", new_mail),
    frame.at("POST /account/password", new_password), frame.at("POST /account/logins", end_login),
    frame.at("POST /account/logout-others", end_others), frame.at("GET /account/data.json", data), frame.at("POST /account/delete", delete),
]  # fmt: skip
