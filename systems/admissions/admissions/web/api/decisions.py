"""Decisions: drafted by one officer, checked by another, released for a whole round."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field

from admissions.desk import decisions
from admissions.domain.decisions import Outcome
from admissions.web.api.base import Count, Id, Me, Out, Strict, Text, Version, check
from holdfast.web import request_tx

router = APIRouter(prefix="/api", tags=["decisions"], dependencies=[Depends(check)])


class Draft(Strict):
    """`version` is that of the decision that was read; 0: there was none."""

    outcome: Annotated[str, Field(pattern=f"^({'|'.join(Outcome)})$")]
    words: Text = ""
    version: Count = 0


class Seen(Strict):
    version: Version


class Drafted(Out):
    version: int


class Round(Out):
    """How many cases of a term have no decision, and how many have one of each stage."""

    none: int
    drafted: int
    checked: int
    released: int


class Released(Out):
    saga_id: str


@router.put("/cases/{application_id}/decision")
async def draft(request: Request, me: Me, application_id: Id, given: Draft) -> Drafted:
    async with request_tx(request) as tx:
        version = await decisions.draft(
            me.id, application_id, Outcome(given.outcome), given.words, version=given.version, tx=tx
        )
    return Drafted(version=version)


@router.post("/cases/{application_id}/decision/check", status_code=204, response_class=Response)
async def check_it(request: Request, me: Me, application_id: Id, given: Seen) -> Response:
    """By somebody else than who drafted it."""
    async with request_tx(request) as tx:
        await decisions.check(me.id, application_id, version=given.version, tx=tx)
    return Response(status_code=204)


@router.get("/terms/{term_id}/decisions")
async def get_round(term_id: Id) -> Round:
    return Round(**await decisions.ready(term_id))


@router.post("/terms/{term_id}/release", status_code=202)
async def release(request: Request, me: Me, term_id: Id) -> Released:
    """All that are checked are told; the others stay as they are."""
    async with request_tx(request) as tx:
        return Released(saga_id=await decisions.release(me.id, term_id, tx=tx))
