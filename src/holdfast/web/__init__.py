"""The edge: ASGI middleware for idempotent, limited and correlated HTTP, and the kit for pages."""

from holdfast.store.visit_records import Login
from holdfast.web.correlation import Correlation
from holdfast.web.idempotency.middleware import IdempotencyKeys
from holdfast.web.idempotency.request import request_session, request_tx
from holdfast.web.limits.bodies import BodyLimits
from holdfast.web.limits.counting import count_request, count_request_sync
from holdfast.web.limits.rates import RateLimit, RateLimits
from holdfast.web.limits.shedding import Shedding
from holdfast.web.probes.ending import watchdog
from holdfast.web.probes.probes import Probes, probes
from holdfast.web.probes.report import Check, Report
from holdfast.web.problems import Problem, ProblemError, Problems, problem_of
from holdfast.web.sessions.middleware import Sessions
from holdfast.web.sessions.session import Session, session_of
from holdfast.web.signed_files import SignedFiles
from holdfast.web.uploads.receiver import Form as UploadForm
from holdfast.web.uploads.receiver import Received, Uploads

__all__ = [
    "BodyLimits",
    "Check",
    "Correlation",
    "IdempotencyKeys",
    "Login",
    "Probes",
    "Problem",
    "ProblemError",
    "Problems",
    "RateLimit",
    "RateLimits",
    "Received",
    "Report",
    "Session",
    "Sessions",
    "Shedding",
    "SignedFiles",
    "UploadForm",
    "Uploads",
    "count_request",
    "count_request_sync",
    "probes",
    "problem_of",
    "request_session",
    "request_tx",
    "session_of",
    "watchdog",
]
