"""The Holdfast of the portal, a guard for each service outside, and the events that its parts tell each other by."""

from __future__ import annotations

import msgspec

from admissions.outside.errors import Passing, Refused, Slowed, Uncertain
from admissions.settings import settings_of
from holdfast import Backoff, Holdfast
from holdfast.guards import Breaker, Bulkhead, Fault, Limiter

VERIFY, PAY, MAIL = "verify_document", "create_payment", "send_email"
settings = settings_of()


def _fault(error: BaseException) -> Fault:
    """What a guard makes of an error of a service outside. A refusal is an answer: the service is well."""
    match error:
        case Refused():
            return Fault.PERMANENT
        case Slowed():
            return Fault.THROTTLED
        case Uncertain():
            return Fault.UNKNOWN
        case Passing():
            return Fault.TRANSIENT
        case _:
            return Fault.TRANSIENT if isinstance(error, OSError | TimeoutError) else Fault.PERMANENT


def _breaker() -> Breaker:
    return Breaker(failure_ratio=0.5, minimum=10, window=60.0, cooldown=settings.breaker_open_s, permits=2)


# An outage charges nobody, from the first call on: what was not done, or may have been, is asked for again.
_UNCHARGED = {Fault.THROTTLED, Fault.TRANSIENT, Fault.UNKNOWN}

hf = Holdfast(
    settings.database_url,
    guards=settings.redis_url,
    cache=settings.redis_url,
    mail=settings.mail(),
    blobs=settings.blobs(),
)
stripe = hf.guard(
    "stripe-api",
    timeout=settings.stripe_timeout_s,
    breaker=_breaker(),
    limiter=Limiter(rate=settings.stripe_rate, burst=20, wait=10.0),
    bulkhead=Bulkhead(20, waiting=50),
    classify=_fault,
    uncharged=_UNCHARGED,
)
scanner = hf.guard(
    "clamd",
    timeout=settings.clamd_timeout_s,
    breaker=_breaker(),
    bulkhead=Bulkhead(settings.verify_at_once, waiting=100),
    classify=_fault,
    uncharged=_UNCHARGED,
)
STAGES = Backoff(
    attempts=settings.attempts, first=settings.first_wait_s, ceiling=max(4.0, 2 * settings.first_wait_s)
)


# --- events: each has the key `application:ID`, and so its own order and versions ---


class Submitted(msgspec.Struct, frozen=True):
    application_id: str
    term_id: str
    number: str
    at: float
    documents: int


class Uploaded(msgspec.Struct, frozen=True):
    """Documents have come, at the submission or later."""

    application_id: str
    documents: list[str]
    replaces: int = 0  # of the refused ones


class Verified(msgspec.Struct, frozen=True):
    application_id: str
    clean: int


class FilesRefused(msgspec.Struct, frozen=True):
    application_id: str
    refused: list[str]
    clean: int


class PaymentOpened(msgspec.Struct, frozen=True):
    application_id: str
    amount: int
    currency: str


class PaymentCompleted(msgspec.Struct, frozen=True):
    application_id: str
    amount: int
    currency: str


class Mailed(msgspec.Struct, frozen=True):
    application_id: str
    message_id: str


class Told(msgspec.Struct, frozen=True):
    """Something became of it: `words` are for its owner."""

    application_id: str
    words: str = ""


hf.event("application.submitted", Submitted)
hf.event("document.uploaded", Uploaded)
hf.event("document.verified", Verified)
hf.event("document.refused", FilesRefused)
hf.event("payment.opened", PaymentOpened)
hf.event("payment.completed", PaymentCompleted)
hf.event("email.sent", Mailed)
hf.event("application.completed", Told)
hf.event("application.failed", Told)
hf.event("application.resumed", Told)
hf.event("application.withdrawn", Told)


def key_of(application_id: str) -> str:
    return f"application:{application_id}"
