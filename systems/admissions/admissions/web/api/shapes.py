"""An application as the API shows it: to its owner, and to officers."""

from __future__ import annotations

from typing import Any

from admissions.desk import story
from admissions.desk.applying import Receipt
from admissions.web.api.base import Out


class Programme(Out):
    """A term that one may apply for. `fee` is in minor units; times are seconds since 1970."""

    term_id: str
    programme: str
    programme_vi: str
    term: str
    opens_at: float
    closes_at: float
    fee: int
    currency: str
    door: str


class Answers(Out):
    name: str
    birth: str
    phone: str
    address: str
    statement: str
    declared: bool


class Document(Out):
    id: str
    kind: str
    name: str
    type: str
    size: int
    sha256: str
    state: str
    made_at: float


class Line(Out):
    """Of the history: what happened, and the values of its sentence."""

    at: float
    kind: str
    values: dict[str, Any]


class Payment(Out):
    state: str
    words: str
    changed_at: float
    booked: int


class Wish(Out):
    """A document that was asked for."""

    kind: str
    words: str


class Decision(Out):
    outcome: str
    words: str


class Application(Out):
    id: str
    number: str
    state: str
    progress: int
    version: int
    submitted_at: float | None
    fee: int
    currency: str
    term: Programme
    answers: Answers
    documents: list[Document]
    history: list[Line]
    payment: Payment
    wishes: list[Wish]
    decision: Decision | None


class Brief(Out):
    """One of a list."""

    id: str
    term_id: str
    state: str
    version: int
    changed_at: float
    programme: str
    term: str


class Accepted(Out):
    """What is proof of a submission."""

    application_id: str
    number: str
    arrived_at: float
    status_url: str
    pay_url: str
    documents: list[Document]


class Status(Out):
    """From the read model. `progress` is of 100, and never falls."""

    id: str
    number: str
    status: str
    progress: int
    created_at: float
    updated_at: float
    documents_verified: bool
    documents_total: int
    documents_clean: int
    documents_rejected: int
    payment_status: str
    email_sent: bool


def accepted(receipt: Receipt) -> Accepted:
    place = f"/applications/{receipt.application_id}"
    return Accepted(
        application_id=receipt.application_id, number=receipt.number, arrived_at=receipt.arrived_at,
        status_url=f"{place}/status", pay_url=f"{place}/pay",
        documents=[Document.model_validate(each) for each in receipt.documents],
    )  # fmt: skip


def shown(its: story.Story) -> Application:
    decision = None if its.decision is None else Decision(outcome=its.decision[0], words=its.decision[1])
    return Application(
        id=its.id, number=its.number, state=its.state, progress=its.progress, version=its.draft.version,
        submitted_at=its.submitted_at or None, fee=its.fee, currency=its.currency,
        term=Programme.model_validate(its.choice), answers=Answers.model_validate(its.draft.answers),
        documents=[Document.model_validate(each) for each in its.documents],
        history=[Line.model_validate(each) for each in its.lines], payment=Payment.model_validate(its.payment),
        wishes=[Wish.model_validate(each) for each in its.wishes], decision=decision,
    )  # fmt: skip
