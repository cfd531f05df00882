"""The error behind a page of trouble, as a problem: by the same table as for programs, and those of Starlette."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException

from holdfast.kernel.context import context
from holdfast.web.asgi import Scope
from holdfast.web.problems import Problem, problem_of, tell_failure

_TITLES = {
    401: "You are not logged in",
    403: "You may not do that",
    404: "There is no such page",
    405: "That cannot be done here",
    413: "That is too much at once",
    429: "Too many at once",
}


def problem_for(scope: Scope, error: BaseException) -> Problem:
    """What the page says. An error that is not the reader's is noted, since the page does not show it."""
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        detail = "" if error.detail == phrase else error.detail
        title = _TITLES.get(error.status_code, phrase)
        problem = Problem(status=error.status_code, title=title, code="", detail=detail)
    else:
        problem = problem_of(error)
        tell_failure(scope, problem, error)
    return msgspec.structs.replace(problem, correlation_id=context().correlation_id)
