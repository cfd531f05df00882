"""For administrators: roles, and the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from admissions.desk import audit, people
from admissions.desk.refusals import Invalid
from admissions.domain.forms import Wrong
from admissions.domain.roles import Role
from admissions.web.api.base import Id, Line, Me, Out, Strict, check
from holdfast.web import request_tx

router = APIRouter(prefix="/api", tags=["administration"], dependencies=[Depends(check)])


class Look(Out):
    """`what` was done or seen by whom, and of what."""

    id: int
    at: float
    person_id: str
    what: str
    subject: str
    words: str


class NewRole(Strict):
    role: Line


@router.get("/audit")
async def get_audit(
    subject: Annotated[Line | None, Query()] = None,
    person: Annotated[Line | None, Query()] = None,
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> list[Look]:
    """The newest first; `before` is the id of the last one that was seen."""
    found = await audit.log(subject=subject, person_id=person, before=before, limit=limit)
    return [Look.model_validate(each) for each in found]


@router.put("/people/{person_id}/role", status_code=204, response_class=Response)
async def set_role(request: Request, me: Me, person_id: Id, given: NewRole) -> Response:
    """Whoever gets another role is logged out."""
    if given.role not in tuple(Role):
        raise Invalid([Wrong("role", "role_wrong", tuple(Role))])
    async with request_tx(request) as tx:
        await people.set_role(me.id, person_id, Role(given.role), tx=tx)
    return Response(status_code=204)
