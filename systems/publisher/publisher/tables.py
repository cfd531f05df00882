"""The publisher's own tables. Times are seconds since 1970, so that one column means the same on both stores."""

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

from holdfast.vault.columns import SealedText
from publisher.domain.states import State

_STATES = ", ".join(f"'{each}'" for each in State)
_NAMES = {
    "pk": "%(table_name)s_pk",
    "fk": "%(table_name)s_of_%(referred_table_name)s",
    "uq": "%(table_name)s_once_%(column_0_name)s",
    "ck": "%(table_name)s_%(constraint_name)s",
    "ix": "%(table_name)s_by_%(column_0_name)s",
}


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {int: BigInteger, str: Text, float: Float(53)}  # noqa: RUF012  SQLAlchemy reads it from the class


def _of_artist() -> Mapped[str]:
    return mapped_column(ForeignKey("artists.id", ondelete="CASCADE"))


class Artist(Base):
    """A DeviantArt account that has logged in: it is the account here, too."""

    __tablename__ = "artists"
    id: Mapped[str] = mapped_column(primary_key=True)
    userid: Mapped[str] = mapped_column(unique=True)  # DeviantArt's
    username: Mapped[str]
    mail: Mapped[str | None]
    zone: Mapped[str] = mapped_column(default="UTC")
    jitter: Mapped[int] = mapped_column(default=300)  # seconds, of what is scheduled by hand
    notices: Mapped[str] = mapped_column(default="{}")  # JSON: which mails are wanted; what is not said is
    is_on: Mapped[bool] = mapped_column(default=True)  # the switch "publishing on"
    post_count: Mapped[int] = mapped_column(default=0)
    made_at: Mapped[float]
    left_at: Mapped[float | None]  # the account is being deleted since then
    __table_args__ = (CheckConstraint("jitter BETWEEN 0 AND 300", "jitter"),)


class Login(Base):
    """The pair of tokens of an artist. `version` grows with each new pair: what was read under an older one is out of date."""

    __tablename__ = "logins"
    artist_id: Mapped[str] = mapped_column(ForeignKey("artists.id", ondelete="CASCADE"), primary_key=True)
    state: Mapped[str] = mapped_column(default="active")
    access: Mapped[str | None] = mapped_column(SealedText)
    refresh: Mapped[str | None] = mapped_column(SealedText)
    access_until: Mapped[float]
    refresh_until: Mapped[float]
    version: Mapped[int] = mapped_column(default=1)
    told: Mapped[str] = mapped_column(default="")  # the last warning of this version: warned, urgent, expired
    why: Mapped[str] = mapped_column(default="")  # it needs a new login
    changed_at: Mapped[float]
    __table_args__ = (
        CheckConstraint("state IN ('active', 'needs_login', 'disconnected')", "state"),
        CheckConstraint("told IN ('', 'warned', 'urgent', 'expired')", "told"),
        Index("logins_that_end", "refresh_until"),
    )


class Post(Base):
    """One work on its way to DeviantArt. `version` grows with each change by a person."""

    __tablename__ = "posts"
    id: Mapped[str] = mapped_column(primary_key=True)
    artist_id: Mapped[str] = _of_artist()
    state: Mapped[str] = mapped_column(default=State.DRAFT)
    title: Mapped[str] = mapped_column(default="")
    details: Mapped[str] = mapped_column(default="{}")  # JSON of domain.posts.Details, without the title
    only_stash: Mapped[bool] = mapped_column(default=False)  # it ends in sta.sh, and is not published
    source: Mapped[str] = mapped_column(default="page")  # page, tool, automation
    automation_id: Mapped[str | None] = mapped_column(ForeignKey("automations.id", ondelete="SET NULL"))
    job_id: Mapped[str | None]
    wished_at: Mapped[float | None]
    due_at: Mapped[float | None]  # wished_at and jitter
    sent_at: Mapped[float | None]  # when the publishing call began that counts
    published_at: Mapped[float | None]
    itemid: Mapped[int | None]  # in sta.sh
    deviationid: Mapped[str | None]
    url: Mapped[str | None]
    reason: Mapped[str] = mapped_column(default="")  # why it failed or waits, for its artist
    advice: Mapped[str] = mapped_column(default="")
    version: Mapped[int] = mapped_column(default=1)
    made_at: Mapped[float]
    changed_at: Mapped[float]
    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES})", "state"),
        CheckConstraint("state NOT IN ('scheduled', 'publishing', 'unknown') OR (job_id IS NOT NULL AND due_at IS NOT NULL)", "open_has_job"),
        CheckConstraint("state <> 'published' OR (published_at IS NOT NULL AND itemid IS NOT NULL)", "published_is_somewhere"),
        CheckConstraint("wished_at IS NULL OR due_at >= wished_at", "never_earlier"),
        Index("posts_of_artist", "artist_id", "state", "due_at", "id"),
        Index("posts_by_change", "artist_id", "changed_at", "id"),
        Index("posts_by_job", "job_id"),
    )  # fmt: skip


class File(Base):
    """A file of a post. The bytes are a blob under `key`; `deleted_at` begins the week in which it can be had back."""

    __tablename__ = "files"
    id: Mapped[str] = mapped_column(primary_key=True)
    artist_id: Mapped[str] = _of_artist()
    post_id: Mapped[str | None] = mapped_column(ForeignKey("posts.id", ondelete="SET NULL"))
    position: Mapped[int] = mapped_column(default=0)
    name: Mapped[str]
    alt: Mapped[str] = mapped_column(default="")
    key: Mapped[str | None]  # None: it was thinned to its preview
    preview_key: Mapped[str | None]
    type: Mapped[str]
    size: Mapped[int]
    sha256: Mapped[str]
    width: Mapped[int | None]
    height: Mapped[int | None]
    made_at: Mapped[float]
    deleted_at: Mapped[float | None]
    __table_args__ = (
        Index("files_of_post", "post_id", "position"),
        Index("files_of_artist", "artist_id", "sha256"),
        Index("files_deleted", "deleted_at", sqlite_where=text("deleted_at IS NOT NULL"), postgresql_where=text("deleted_at IS NOT NULL")),
    )  # fmt: skip


class Happening(Base):
    """One line of a post's history, in words. Lines are only ever added."""

    __tablename__ = "happenings"
    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    post_id: Mapped[str] = mapped_column(ForeignKey("posts.id", ondelete="CASCADE"))
    at: Mapped[float]
    kind: Mapped[
        str
    ]  # scheduled, moved, cancelled, uploaded, sent, waiting, published, failed, unknown, decided …
    words: Mapped[str]
    who: Mapped[str] = mapped_column(default="")  # you, an automation, the publisher
    __table_args__ = (Index("happenings_of_post", "post_id", "id"),)


class Receipt(Base):
    """What proves that a post was published by one call: kept when its job is forgotten."""

    __tablename__ = "receipts"
    post_id: Mapped[str] = mapped_column(ForeignKey("posts.id", ondelete="CASCADE"), primary_key=True)
    at: Mapped[float]
    story: Mapped[str]  # JSON of the job's story


class Automation(Base):
    """`looked_until`: nominal times up to then are done. `note` is what its artist must know, such as an empty pool."""

    __tablename__ = "automations"
    id: Mapped[str] = mapped_column(primary_key=True)
    artist_id: Mapped[str] = _of_artist()
    name: Mapped[str]
    description: Mapped[str] = mapped_column(default="")
    colour: Mapped[str] = mapped_column(default="")
    position: Mapped[int] = mapped_column(default=0)
    is_on: Mapped[bool] = mapped_column(default=False)
    selection: Mapped[str] = mapped_column(default="fifo")
    agreement: Mapped[str] = mapped_column(default="any")
    jitter_low: Mapped[int] = mapped_column(default=0)
    jitter_high: Mapped[int] = mapped_column(default=300)
    only_stash: Mapped[bool] = mapped_column(default=False)
    preset_id: Mapped[str | None] = mapped_column(ForeignKey("presets.id", ondelete="SET NULL"))
    rules: Mapped[str] = mapped_column(default="[]")  # JSON of domain.rules
    defaults: Mapped[str] = mapped_column(default="{}")  # JSON of domain.defaults
    looked_until: Mapped[float]
    note: Mapped[str] = mapped_column(default="")
    version: Mapped[int] = mapped_column(default=1)
    made_at: Mapped[float]
    __table_args__ = (
        CheckConstraint("selection IN ('fifo', 'lifo', 'random')", "selection"),
        CheckConstraint("agreement IN ('any', 'all')", "agreement"),
        CheckConstraint("jitter_low BETWEEN 0 AND jitter_high AND jitter_high <= 3600", "jitter"),
        Index("automations_of_artist", "artist_id", "position"),
    )


class Execution(Base):
    """What an automation did at one nominal time: the key makes it once."""

    __tablename__ = "executions"
    automation_id: Mapped[str] = mapped_column(
        ForeignKey("automations.id", ondelete="CASCADE"), primary_key=True
    )
    nominal_at: Mapped[float] = mapped_column(primary_key=True)
    at: Mapped[float]
    seconds: Mapped[float]
    wanted: Mapped[int]
    chosen: Mapped[str] = mapped_column(default="[]")  # JSON: ids of posts
    skipped: Mapped[str] = mapped_column(default="[]")  # JSON: [id of post, why]
    words: Mapped[str] = mapped_column(default="")


class Template(Base):
    __tablename__ = "templates"
    id: Mapped[str] = mapped_column(primary_key=True)
    artist_id: Mapped[str] = _of_artist()
    kind: Mapped[str]
    name: Mapped[str]
    text: Mapped[str]
    made_at: Mapped[float]
    __table_args__ = (
        CheckConstraint("kind IN ('tags', 'description', 'comment')", "kind"),
        UniqueConstraint("artist_id", "kind", "name", name="templates_once"),
    )


class Preset(Base):
    """A price, or a range of which each post gets one; in cents."""

    __tablename__ = "presets"
    id: Mapped[str] = mapped_column(primary_key=True)
    artist_id: Mapped[str] = _of_artist()
    name: Mapped[str]
    low: Mapped[int]
    high: Mapped[int]
    is_default: Mapped[bool] = mapped_column(default=False)
    made_at: Mapped[float]
    __table_args__ = (
        CheckConstraint("100 <= low AND low <= high AND high <= 1000000", "range"),
        UniqueConstraint("artist_id", "name", name="presets_once"),
    )


class Sale(Base):
    """One entry of the sale queue, for a program outside. `token` fences its lease."""

    __tablename__ = "sales"
    id: Mapped[str] = mapped_column(primary_key=True)
    artist_id: Mapped[str] = _of_artist()
    post_id: Mapped[str] = mapped_column(ForeignKey("posts.id", ondelete="CASCADE"), unique=True)
    preset_id: Mapped[str | None] = mapped_column(ForeignKey("presets.id", ondelete="SET NULL"))
    price: Mapped[int]  # cents
    state: Mapped[str] = mapped_column(default="pending")
    attempts: Mapped[int] = mapped_column(default=0)
    client: Mapped[str] = mapped_column(default="")
    token: Mapped[int] = mapped_column(default=0)
    leased_until: Mapped[float | None]
    error: Mapped[str] = mapped_column(default="")
    made_at: Mapped[float]
    ended_at: Mapped[float | None]
    __table_args__ = (
        CheckConstraint("state IN ('pending', 'processing', 'completed', 'failed', 'skipped')", "state"),
        CheckConstraint("(state = 'processing') = (leased_until IS NOT NULL)", "processing_has_lease"),
        CheckConstraint("attempts BETWEEN 0 AND 3", "attempts"),
        Index("sales_for_next", "artist_id", "state", "made_at"),
    )


class ApiKey(Base):
    """Of the secret only its hash is here; `prefix` is what people see of it."""

    __tablename__ = "api_keys"
    id: Mapped[str] = mapped_column(primary_key=True)
    artist_id: Mapped[str] = _of_artist()
    name: Mapped[str]
    prefix: Mapped[str]
    sha256: Mapped[str] = mapped_column(unique=True)
    made_at: Mapped[float]
    used_at: Mapped[float | None]
    revoked_at: Mapped[float | None]


class Export(Base):
    """Everything of an artist as a zip, made by a job."""

    __tablename__ = "exports"
    id: Mapped[str] = mapped_column(primary_key=True)
    artist_id: Mapped[str] = _of_artist()
    job_id: Mapped[str | None]
    key: Mapped[str | None]  # of the blob, when it is ready
    size: Mapped[int | None]
    made_at: Mapped[float]
    ready_at: Mapped[float | None]
    __table_args__ = (Index("exports_of_artist", "artist_id", "made_at"),)


class Notice(Base):
    """A mail that was decided on: each once for its cause."""

    __tablename__ = "notices"
    artist_id: Mapped[str] = mapped_column(ForeignKey("artists.id", ondelete="CASCADE"), primary_key=True)
    cause: Mapped[str] = mapped_column(primary_key=True)  # such as failed:POST:JOB, urgent:VERSION
    at: Mapped[float]
