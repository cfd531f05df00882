"""The portal's own tables. Times are seconds since 1970, money is in minor units, so that one column means the same on both stores."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from admissions.domain.decisions import Outcome, Stage
from admissions.domain.roles import Role
from admissions.domain.states import STANDING, State

_NAMES = {
    "pk": "%(table_name)s_pk",
    "fk": "%(table_name)s_%(column_0_name)s_of_%(referred_table_name)s",
    "uq": "%(table_name)s_once_%(column_0_name)s",
    "ck": "%(table_name)s_%(constraint_name)s",
    "ix": "%(table_name)s_by_%(column_0_name)s",
}


def _one_of(column: str, names: object) -> str:
    return f"{column} IN ({', '.join(repr(str(each)) for each in names)})"  # type: ignore[attr-defined]


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {int: BigInteger, str: Text, float: Float(53)}  # noqa: RUF012  SQLAlchemy reads it from the class


# --- people ---


class Person(Base):
    """Somebody who can log in. `mail` is folded to lower case; a new address waits in `new_mail` until it is confirmed."""

    __tablename__ = "people"
    id: Mapped[str] = mapped_column(primary_key=True)
    mail: Mapped[str] = mapped_column(unique=True)
    new_mail: Mapped[str | None]
    password: Mapped[str]  # argon2
    name: Mapped[str] = mapped_column(default="")
    role: Mapped[str] = mapped_column(default=Role.APPLICANT)
    language: Mapped[str] = mapped_column(default="en")
    confirmed_at: Mapped[float | None]
    made_at: Mapped[float]
    blocked_at: Mapped[float | None]
    __table_args__ = (
        CheckConstraint(_one_of("role", Role), "role"),
        CheckConstraint("language IN ('en', 'vi')", "language"),
        CheckConstraint("mail = lower(mail)", "mail_is_folded"),
    )


class Ticket(Base):
    """A link by mail, good once: of the secret only its hash is here."""

    __tablename__ = "tickets"
    sha256: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[str] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    kind: Mapped[str]
    until: Mapped[float]
    used_at: Mapped[float | None]
    __table_args__ = (CheckConstraint("kind IN ('confirm', 'reset', 'change')", "kind"),)


class Look(Base):
    """The audit log: every look at personal data, and every change. Only ever added to."""

    __tablename__ = "looks"
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    at: Mapped[float]
    person_id: Mapped[str]  # who; kept when the person is gone
    what: Mapped[str]  # such as case.read, file.read, decision.drafted
    subject: Mapped[str]  # such as an application's id
    words: Mapped[str] = mapped_column(default="")
    correlation_id: Mapped[str] = mapped_column(default="")
    __table_args__ = (Index("looks_at_subject", "subject", "id"), Index("looks_of_person", "person_id", "id"))


class SavedView(Base):
    """Filters of the queue under a name, for the one who has saved them."""

    __tablename__ = "saved_views"
    id: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[str] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    name: Mapped[str]
    query: Mapped[str]  # as in the address
    made_at: Mapped[float]
    __table_args__ = (UniqueConstraint("person_id", "name", name="saved_views_once"),)


# --- what can be applied for ---


class Programme(Base):
    __tablename__ = "programmes"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    name_vi: Mapped[str] = mapped_column(default="")
    is_open: Mapped[bool] = mapped_column(default=True)
    position: Mapped[int] = mapped_column(default=0)


class Term(Base):
    """One round of a programme. Times are instants; the zone is the university's."""

    __tablename__ = "terms"
    id: Mapped[str] = mapped_column(primary_key=True)
    programme_id: Mapped[str] = mapped_column(ForeignKey("programmes.id", ondelete="CASCADE"))
    name: Mapped[str]
    opens_at: Mapped[float]
    closes_at: Mapped[float]
    grace: Mapped[float] = mapped_column(default=0.0)
    fee: Mapped[int]  # minor units
    currency: Mapped[str] = mapped_column(default="usd")
    places: Mapped[int] = mapped_column(default=0)
    released_at: Mapped[float | None]  # decisions of this round are told since then
    __table_args__ = (
        CheckConstraint("closes_at > opens_at", "closes_after"),
        CheckConstraint("fee >= 0", "fee"),
        UniqueConstraint("programme_id", "name", name="terms_once"),
    )


# --- applications ---


class Application(Base):
    """`fee` is that of the moment of submission. `version` grows with each change; `stage_version` with each stage of the pipeline."""

    __tablename__ = "applications"
    id: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[str | None] = mapped_column(unique=True)  # on the receipt, such as 2026-000412
    person_id: Mapped[str] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    term_id: Mapped[str] = mapped_column(ForeignKey("terms.id"))
    state: Mapped[str] = mapped_column(default=State.DRAFT)
    progress: Mapped[int] = mapped_column(default=0)
    answers: Mapped[str] = mapped_column(default="{}")  # JSON of domain.forms.Answers
    fee: Mapped[int] = mapped_column(default=0)
    currency: Mapped[str] = mapped_column(default="usd")
    officer_id: Mapped[str | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"))
    reason: Mapped[str] = mapped_column(default="")  # why it waits or failed, for its owner
    failed_in: Mapped[str] = mapped_column(default="")  # the state that it had when a stage failed
    version: Mapped[int] = mapped_column(default=1)
    made_at: Mapped[float]
    changed_at: Mapped[float]
    submitted_at: Mapped[float | None]  # when it arrived
    __table_args__ = (
        CheckConstraint(_one_of("state", State), "state"),
        CheckConstraint("progress BETWEEN 0 AND 100", "progress"),
        CheckConstraint(
            "state = 'draft' OR (submitted_at IS NOT NULL AND number IS NOT NULL)", "submitted_has_receipt"
        ),
        # One that stands for each person and term.
        Index(
            "applications_once",
            "person_id",
            "term_id",
            unique=True,
            sqlite_where=text(_one_of("state", sorted(STANDING))),
            postgresql_where=text(_one_of("state", sorted(STANDING))),
        ),
        Index("applications_in_queue", "term_id", "state", "submitted_at", "id"),
        Index("applications_of_person", "person_id", "made_at"),
        Index("applications_of_officer", "officer_id", "state"),
    )


class Document(Base):
    """A file of an application. A scan's result belongs to its hash."""

    __tablename__ = "documents"
    id: Mapped[str] = mapped_column(primary_key=True)
    application_id: Mapped[str] = mapped_column(ForeignKey("applications.id", ondelete="CASCADE"))
    kind: Mapped[str] = mapped_column(default="other")
    name: Mapped[str]
    key: Mapped[str]  # of the blob
    type: Mapped[str]
    size: Mapped[int]
    sha256: Mapped[str]
    state: Mapped[str] = mapped_column(default="new")
    found: Mapped[str] = mapped_column(default="")  # what the scanner has found
    scanner: Mapped[str] = mapped_column(default="")  # which one looked: clamd, or the built-in one
    made_at: Mapped[float]
    scanned_at: Mapped[float | None]
    replaced_by: Mapped[str | None]
    __table_args__ = (
        CheckConstraint("kind IN ('transcript', 'identification', 'other')", "kind"),
        CheckConstraint("state IN ('new', 'clean', 'infected', 'replaced')", "state"),
        CheckConstraint("(state IN ('clean', 'infected')) <= (scanned_at IS NOT NULL)", "scanned_has_time"),
        Index("documents_of_application", "application_id", "made_at"),
        Index("documents_by_hash", "sha256"),
    )


class Step(Base):
    """One line of an application's history, for its owner and the officers. `is_inner` ones are for officers alone."""

    __tablename__ = "steps"
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    application_id: Mapped[str] = mapped_column(ForeignKey("applications.id", ondelete="CASCADE"))
    at: Mapped[float]
    kind: Mapped[str]
    words: Mapped[str] = mapped_column(default="")  # JSON of values for the sentence of its kind
    is_inner: Mapped[bool] = mapped_column(default=False)
    __table_args__ = (Index("steps_of_application", "application_id", "id"),)


class Request(Base):
    """An officer asks for a document."""

    __tablename__ = "requests"
    id: Mapped[str] = mapped_column(primary_key=True)
    application_id: Mapped[str] = mapped_column(ForeignKey("applications.id", ondelete="CASCADE"))
    officer_id: Mapped[str]
    kind: Mapped[str]
    words: Mapped[str]
    made_at: Mapped[float]
    document_id: Mapped[str | None]  # what came
    closed_at: Mapped[float | None]
    __table_args__ = (Index("requests_of_application", "application_id", "made_at"),)


class Note(Base):
    """Of officers, for officers."""

    __tablename__ = "notes"
    id: Mapped[str] = mapped_column(primary_key=True)
    application_id: Mapped[str] = mapped_column(ForeignKey("applications.id", ondelete="CASCADE"))
    officer_id: Mapped[str]
    text: Mapped[str]
    at: Mapped[float]
    __table_args__ = (Index("notes_of_application", "application_id", "at"),)


# --- money ---


class Payment(Base):
    """The one intent of an application at Stripe."""

    __tablename__ = "payments"
    application_id: Mapped[str] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), primary_key=True
    )
    intent: Mapped[str | None] = mapped_column(unique=True)
    state: Mapped[str] = mapped_column(default="none")
    amount: Mapped[int]
    currency: Mapped[str]
    words: Mapped[str] = mapped_column(default="")  # why the last card was declined
    asked_at: Mapped[float | None]  # when Stripe was last asked how it stands
    changed_at: Mapped[float]
    __table_args__ = (
        CheckConstraint(
            "state IN ('none', 'open', 'confirming', 'declined', 'paid', 'refunded', 'odd')", "state"
        ),
    )


class Entry(Base):
    """A charge or a refund: paid is their sum. The provider's reference makes each once, whoever tells of it."""

    __tablename__ = "entries"
    reference: Mapped[str] = mapped_column(primary_key=True)  # of the charge or refund
    application_id: Mapped[str | None] = mapped_column(
        ForeignKey("applications.id", ondelete="SET NULL")
    )  # None: unmatched
    intent: Mapped[str]
    amount: Mapped[int]  # negative for a refund
    currency: Mapped[str]
    source: Mapped[str]  # who told us first: webhook, return, look
    at: Mapped[float]
    __table_args__ = (
        CheckConstraint("amount <> 0", "amount"),
        CheckConstraint("source IN ('webhook', 'return', 'look')", "source"),
        Index("entries_of_application", "application_id"),
    )


class WebhookEvent(Base):
    """An event of Stripe that was taken, so that the same one changes nothing again."""

    __tablename__ = "webhook_events"
    id: Mapped[str] = mapped_column(primary_key=True)
    type: Mapped[str]
    at: Mapped[float]


# --- decisions and mail ---


class Decision(Base):
    """Drafted by one, checked by another, released with its round."""

    __tablename__ = "decisions"
    application_id: Mapped[str] = mapped_column(
        ForeignKey("applications.id", ondelete="CASCADE"), primary_key=True
    )
    outcome: Mapped[str]
    stage: Mapped[str] = mapped_column(default=Stage.DRAFTED)
    words: Mapped[str] = mapped_column(default="")  # for the letter
    drafted_by: Mapped[str]
    drafted_at: Mapped[float]
    checked_by: Mapped[str | None]
    checked_at: Mapped[float | None]
    released_at: Mapped[float | None]
    version: Mapped[int] = mapped_column(default=1)
    __table_args__ = (
        CheckConstraint(_one_of("outcome", Outcome), "outcome"),
        CheckConstraint(_one_of("stage", Stage), "stage"),
        CheckConstraint("checked_by IS NULL OR checked_by <> drafted_by", "two_people"),
        CheckConstraint("(stage = 'released') = (released_at IS NOT NULL)", "released_has_time"),
        CheckConstraint("stage = 'drafted' OR checked_by IS NOT NULL", "checked_before_release"),
    )


class Letter(Base):
    """A mail that was decided on: once for its cause, so that two stages that race send one."""

    __tablename__ = "letters"
    cause: Mapped[str] = mapped_column(primary_key=True)  # such as receipt:ID, paid:ID, decision:ID
    application_id: Mapped[str | None] = mapped_column(ForeignKey("applications.id", ondelete="CASCADE"))
    kind: Mapped[str]
    recipient: Mapped[str]
    message_id: Mapped[str] = mapped_column(default="")
    job_id: Mapped[str] = mapped_column(default="")
    state: Mapped[str] = mapped_column(default="stored")
    at: Mapped[float]
    __table_args__ = (
        CheckConstraint("state IN ('stored', 'sent', 'refused')", "state"),
        Index("letters_of_application", "application_id", "at"),
    )
