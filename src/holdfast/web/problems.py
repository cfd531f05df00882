"""Errors as answers (RFC 9457): one place says which error is which status. Outside they are generic, the log has the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.blobs import errors as b
from holdfast.kernel import errors as e
from holdfast.kernel.context import context
from holdfast.kernel.telemetry import note
from holdfast.web.asgi import App, Message, Receive, Scope, Send, answer, header, path_of

_TYPE = b"application/problem+json"
_SOON = 2  # seconds, when nobody knows better
PAGE = "holdfast.problem_page"  # in the scope: draws a problem as HTML


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong, as a document that programs and people can read. `code` is for programs, and stays the same."""

    status: int
    title: str
    code: str
    detail: str = ""
    type: str = "about:blank"
    retry_after: int | None = None  # seconds
    correlation_id: str | None = None
    errors: tuple[dict[str, Any], ...] = ()  # one for each field that is wrong: field, message

    async def send(self, scope: Scope, send: Send, *, fields: Iterable[tuple[bytes, bytes]] = ()) -> None:
        whole = msgspec.structs.replace(self, correlation_id=self.correlation_id or context().correlation_id)
        kind, content = _page(whole, scope) or (_TYPE, msgspec.json.encode(whole))
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(content))]
        headers += [(b"cache-control", b"no-store"), *fields]
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after))
        await answer(send, self.status, content, headers, empty=scope["method"] == "HEAD")


INTERNAL = Problem(
    status=500,
    title="Something went wrong here",
    code="INTERNAL_ERROR",
    detail="It was noted under the correlation id. Nothing that the request asked for is known to be done.",
)

# SQLAlchemy tells so of each of its errors; in the middle of a commit nobody knows what was stored.
_CUT_OFF = Problem(
    status=503,
    title="The database does not answer",
    code="STORE_UNAVAILABLE",
    retry_after=_SOON,
    detail="Send the same request again, with the same Idempotency-Key if it had one.",
)
# The first that fits. What is not here is a fault of the program, and answered as INTERNAL.
_PROBLEMS: tuple[tuple[type[BaseException], Problem], ...] = (
    (e.CommitUnknown, Problem(
        status=503, title="Nobody knows yet whether it was done", code="OUTCOME_UNKNOWN", retry_after=_SOON,
        detail="Send the same request again, with the same Idempotency-Key if it had one.")),
    (e.TooManyWaiting, Problem(
        status=503, title="Too much work is waiting", code="TOO_MUCH_WAITING", retry_after=5,
        detail="Nothing was stored. Send the same request again later.")),
    (e.StoreReadOnly, Problem(
        status=503, title="Nothing can be stored now", code="STORE_READ_ONLY", retry_after=5,
        detail="Nothing was stored. Send the same request again later.")),
    (e.StoreFull, Problem(
        status=503, title="Nothing can be stored now", code="STORE_FULL", retry_after=30,
        detail="Nothing was stored. Send the same request again later.")),
    (e.StoreUnavailable, Problem(
        status=503, title="The database does not answer", code="STORE_UNAVAILABLE", retry_after=_SOON,
        detail="Nothing was stored. Send the same request again.")),
    (e.TransactionEnded, Problem(
        status=503, title="It took too long to store", code="TRANSACTION_ENDED", retry_after=_SOON,
        detail="Nothing was stored. Send the same request again.")),
    (e.DeadlinePassed, Problem(
        status=504, title="There was no time left", code="DEADLINE_PASSED",
        detail="The time that the request had is over.")),
    (e.Refused, Problem(
        status=503, title="A service that this needs cannot be asked now", code="SERVICE_REFUSED", retry_after=5,
        detail="Send the same request again later.")),
    (e.TimedOut, Problem(
        status=504, title="A service that this needs gave no answer in time", code="SERVICE_TIMED_OUT")),
    (e.VersionConflict, Problem(
        status=409, title="Somebody else has changed it meanwhile", code="VERSION_CONFLICT",
        detail="Read it again, and decide anew.")),
    (e.LockHeld, Problem(
        status=409, title="Somebody else is working on it", code="LOCKED", retry_after=_SOON)),
    (b.BlobMissing, Problem(status=404, title="There is no such file", code="FILE_NOT_FOUND")),
    (b.BlobQuarantined, Problem(status=403, title="This file is held back", code="FILE_QUARANTINED")),
    (b.BlobExists, Problem(status=409, title="There is a file of this name", code="FILE_EXISTS")),
    (b.BlobTooLarge, Problem(status=413, title="A file is too large", code="FILE_TOO_LARGE")),
    (b.BlobQuotaExceeded, Problem(
        status=413, title="There is no room left for this file", code="FILE_QUOTA_EXCEEDED", detail="Delete others first.")),
    (b.BlobMismatch, Problem(
        status=422, title="The file is not the one that was announced", code="FILE_MISMATCH", detail="Nothing of it was kept. Send it again.")),
    (b.BlobUnavailable, Problem(
        status=503, title="Files can be neither stored nor read now", code="FILES_UNAVAILABLE", retry_after=_SOON,
        detail="Nothing was stored. Send the same request again.")),
    (e.PayloadError, Problem(
        status=422, title="This cannot be stored", code="PAYLOAD_REFUSED",
        detail="It has text, a number, a depth or a size that is not taken. Nothing was stored.")),
    (e.ViewBehind, Problem(
        status=503, title="The latest change cannot be shown yet", code="VIEW_BEHIND", retry_after=1)),
    (e.ReplicaBehind, Problem(
        status=503, title="The latest change cannot be shown yet", code="REPLICA_BEHIND", retry_after=1)),
)  # fmt: skip


class ProblemError(e.HoldfastError):
    """A request that is refused with this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.title}. {problem.detail}".strip())
        self.problem = problem


def problem_of(error: BaseException) -> Problem:
    """The answer to a request that failed with this. It says nothing of what is inside."""
    if isinstance(error, ProblemError):
        return error.problem
    if getattr(error, "connection_invalidated", False):
        return _CUT_OFF
    found = next((problem for kind, problem in _PROBLEMS if isinstance(error, kind)), INTERNAL)
    after = getattr(error, "retry_after", None)
    if isinstance(error, e.Refused) and after is not None:
        return msgspec.structs.replace(found, retry_after=max(1, math.ceil(after)))
    return found


def _page(problem: Problem, scope: Scope) -> tuple[bytes, bytes] | None:
    """For somebody who has sent a form or opened a link, where `WithPages` stands outside; None: a document is right."""
    draw = scope.get(PAGE)
    if draw is None or not _wants_page(scope):
        return None
    try:
        return b"text/html; charset=utf-8", draw(problem)
    except Exception as error:  # noqa: BLE001  templates and what they are given are the program's
        tell_failure(scope, INTERNAL, error)
        return None


def _wants_page(scope: Scope) -> bool:
    """Browsers that load a page name HTML, and programs do not; who names both is a program."""
    accepted = (header(scope, b"accept") or "").lower()
    return "text/html" in accepted and "json" not in accepted


class Problems:
    """Middleware that answers what the app raises as a problem document, and notes it. An answer that has begun stays.

    Inside of `WithPages`, a browser gets a page of the kit.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def watched(message: Message) -> None:
            nonlocal began
            began = began or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            problem = problem_of(error)
            tell_failure(scope, problem, error)
            if began:
                raise
            await problem.send(scope, send)


def tell_failure(scope: Scope, problem: Problem, error: BaseException) -> None:
    """One line in the log, with the error that the answer does not show."""
    method, path = scope["method"], path_of(scope)
    if problem.status == INTERNAL.status:
        note("request.failed", method=method, path=path, code=problem.code, error=repr(error))
    else:
        note("request.refused", method=method, path=path, code=problem.code, error=repr(error))
