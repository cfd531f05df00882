"""Refusals as problem documents: those of the desk, of the models, and of the router."""

from __future__ import annotations

from http import HTTPStatus
from math import ceil
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from admissions.desk.people import NotLoggedIn
from admissions.desk.refusals import Changed, Closed, Forbidden, Invalid, NotHere, Refusal, TooLate, TooSoon
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web import Problem

_SHOWN = 300  # characters
TITLES: dict[type[Refusal], tuple[str, str]] = {
    NotHere: ("There is no such thing", "NOT_HERE"),
    Forbidden: ("Your role does not allow this", "FORBIDDEN"),
    NotLoggedIn: ("You are not logged in", "LOGIN_WRONG"),
    TooLate: ("It is too late for that", "TOO_LATE"),
    Changed: ("It was changed meanwhile", "CHANGED"),
    Closed: ("Nothing is taken", "CLOSED"),
    Invalid: ("Some values cannot be", "VALUES_REFUSED"),
    TooSoon: ("It is too soon for that", "TOO_SOON"),
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["status", "title", "code"],
    "properties": {
        "status": {"type": "integer"},
        "title": {"type": "string"},
        "code": {"type": "string"},
        "detail": {"type": "string"},
        "retry_after": {"type": "integer"},
        "correlation_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
REFUSED = {"description": "Refused", "content": {"application/problem+json": {"schema": SCHEMA}}}
RESPONSES: dict[int | str, dict[str, Any]] = {"4XX": REFUSED, "5XX": REFUSED}


class ProblemResponse(Response):
    """A problem document; for a browser that loads a page, a page."""

    def __init__(self, problem: Problem, headers: dict[str, str] | None = None) -> None:
        super().__init__(status_code=problem.status, headers=headers)
        self._problem, self._more = problem, headers or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        fields = [(name.lower().encode(), value.encode()) for name, value in self._more.items()]
        await self._problem.send(scope, send, fields=fields)


def answer_refusals(app: FastAPI) -> None:
    app.add_exception_handler(Refusal, _refusal)
    app.add_exception_handler(RequestValidationError, _values)
    app.add_exception_handler(HTTPException, _http)


def problem_of(refusal: Refusal, language: str = "en") -> Problem:
    title, code = TITLES.get(type(refusal), ("This was refused", "REFUSED"))
    errors: tuple[dict[str, Any], ...] = ()
    if isinstance(refusal, Invalid):
        errors = tuple(
            {"field": each.field, "message": say(language, each.key, *each.values)} for each in refusal.wrong
        )
    if isinstance(refusal, TooLate):
        errors = ({"field": "state", "message": str(refusal.state)},)
    if isinstance(refusal, Changed):
        errors = ({"field": "version", "message": str(refusal.version)},)
    after = ceil(refusal.seconds) if isinstance(refusal, TooSoon) else None
    detail = say(language, refusal.key, *refusal.values)
    return Problem(
        status=refusal.status, title=title, code=code, detail=detail, errors=errors, retry_after=after
    )


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    return ProblemResponse(problem_of(error, visitor.language if visitor else "en"))


async def _values(_: Request, error: Exception) -> Response:
    """What pydantic says, without what was sent: that may be a secret, or no text at all."""
    assert isinstance(error, RequestValidationError)
    errors = tuple(
        {
            "field": ".".join(str(part) for part in each["loc"][1:])[:_SHOWN] or str(each["loc"][0]),
            "message": str(each["msg"])[:_SHOWN],
        }
        for each in error.errors()[:50]
    )
    title, code = TITLES[Invalid]
    return ProblemResponse(Problem(status=422, title=title, code=code, errors=_plain(errors)))


def _plain(errors: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """Names of fields are the client's, and may be no text that can be sent."""
    return tuple(
        {name: text.encode("utf-8", "replace").decode() for name, text in each.items()} for each in errors
    )


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    detail = error.detail if error.detail != status.phrase else ""
    told = Problem(status=status.value, title=status.phrase, code=status.name, detail=detail)
    return ProblemResponse(told, dict(error.headers or {}))
