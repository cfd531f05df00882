"""For administrators: people and their roles, and the audit log."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import audit, directory, people
from admissions.desk.refusals import Invalid
from admissions.domain.forms import Wrong
from admissions.domain.roles import Role
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web.pages import Cursor


async def show_people(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    cursor = Cursor(request, size=50)
    told = request.query_params
    role = Role(told["role"]) if told.get("role") in tuple(Role) else None
    place = cursor.key[0] if cursor.key and len(cursor.key) == 1 and isinstance(cursor.key[0], str) else None
    way = {} if place is None else {"before" if cursor.is_backwards else "after": place}
    found = await directory.listing(search=told.get("q", "")[:100], role=role, **way, limit=cursor.limit)
    values = {
        "rows": cursor.rows(found, key=lambda each: (each.mail,)), "search": told.get("q", "")[:100], "role": role or "",
        "roles": [str(each) for each in Role],
    }  # fmt: skip
    return frame.render(request, "desk_people.html", values)


async def set_role(request: Request, visitor: Visitor) -> Response:
    role = (await frame.read(request))["role"]
    if role not in tuple(Role):
        raise Invalid([Wrong("role", "role_wrong", tuple(Role))])
    await people.set_role(visitor.id, request.path_params["person_id"], Role(role))
    return frame.back(request, Notice(say(visitor.language, "role_saved")))


async def show_audit(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    subject = request.query_params.get("subject", "").strip()[:100]
    before = request.query_params.get("before", "")
    last = int(before) if before.isdecimal() and len(before) < 16 else None
    found = await audit.log(subject=subject or None, before=last, limit=101)
    looks, more = found[:100], found[100:]
    values = {
        "looks": looks, "names": await directory.names([each.person_id for each in looks]), "subject": subject,
        "older": looks[-1].id if more else None, "is_first": last is None,
    }  # fmt: skip
    return frame.render(request, "desk_audit.html", values)


routes = [
    frame.at("GET /desk/people", show_people),
    frame.at("POST /desk/people/{person_id}/role", set_role),
    frame.at("GET /desk/audit", show_audit),
]
