"""Make the publisher's own tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "artists",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("userid", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("mail", sa.Text(), nullable=True),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("jitter", sa.BigInteger(), nullable=False),
        sa.Column("notices", sa.Text(), nullable=False),
        sa.Column("is_on", sa.Boolean(), nullable=False),
        sa.Column("post_count", sa.BigInteger(), nullable=False),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.Column("left_at", sa.Float(precision=53), nullable=True),
        sa.CheckConstraint("jitter BETWEEN 0 AND 300", name=op.f("artists_jitter")),
        sa.PrimaryKeyConstraint("id", name=op.f("artists_pk")),
        sa.UniqueConstraint("userid", name=op.f("artists_once_userid")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.Column("used_at", sa.Float(precision=53), nullable=True),
        sa.Column("revoked_at", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("api_keys_of_artists"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("api_keys_pk")),
        sa.UniqueConstraint("sha256", name=op.f("api_keys_once_sha256")),
    )
    op.create_table(
        "exports",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.Column("ready_at", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("exports_of_artists"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("exports_pk")),
    )
    with op.batch_alter_table("exports", schema=None) as batch_op:
        batch_op.create_index("exports_of_artist", ["artist_id", "made_at"], unique=False)

    op.create_table(
        "logins",
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("access", sa.Text(), nullable=True),
        sa.Column("refresh", sa.Text(), nullable=True),
        sa.Column("access_until", sa.Float(precision=53), nullable=False),
        sa.Column("refresh_until", sa.Float(precision=53), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("told", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Float(precision=53), nullable=False),
        sa.CheckConstraint("state IN ('active', 'needs_login', 'disconnected')", name=op.f("logins_state")),
        sa.CheckConstraint("told IN ('', 'warned', 'urgent', 'expired')", name=op.f("logins_told")),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("logins_of_artists"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("artist_id", name=op.f("logins_pk")),
    )
    with op.batch_alter_table("logins", schema=None) as batch_op:
        batch_op.create_index("logins_that_end", ["refresh_until"], unique=False)

    op.create_table(
        "notices",
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("notices_of_artists"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("artist_id", "cause", name=op.f("notices_pk")),
    )
    op.create_table(
        "presets",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("low", sa.BigInteger(), nullable=False),
        sa.Column("high", sa.BigInteger(), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.CheckConstraint("100 <= low AND low <= high AND high <= 1000000", name=op.f("presets_range")),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("presets_of_artists"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("presets_pk")),
        sa.UniqueConstraint("artist_id", "name", name="presets_once"),
    )
    op.create_table(
        "templates",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.CheckConstraint("kind IN ('tags', 'description', 'comment')", name=op.f("templates_kind")),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("templates_of_artists"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("templates_pk")),
        sa.UniqueConstraint("artist_id", "kind", "name", name="templates_once"),
    )
    op.create_table(
        "automations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("colour", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("is_on", sa.Boolean(), nullable=False),
        sa.Column("selection", sa.Text(), nullable=False),
        sa.Column("agreement", sa.Text(), nullable=False),
        sa.Column("jitter_low", sa.BigInteger(), nullable=False),
        sa.Column("jitter_high", sa.BigInteger(), nullable=False),
        sa.Column("only_stash", sa.Boolean(), nullable=False),
        sa.Column("preset_id", sa.Text(), nullable=True),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("defaults", sa.Text(), nullable=False),
        sa.Column("looked_until", sa.Float(precision=53), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.CheckConstraint("agreement IN ('any', 'all')", name=op.f("automations_agreement")),
        sa.CheckConstraint("selection IN ('fifo', 'lifo', 'random')", name=op.f("automations_selection")),
        sa.CheckConstraint(
            "jitter_low BETWEEN 0 AND jitter_high AND jitter_high <= 3600", name=op.f("automations_jitter")
        ),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("automations_of_artists"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["preset_id"], ["presets.id"], name=op.f("automations_of_presets"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("automations_pk")),
    )
    with op.batch_alter_table("automations", schema=None) as batch_op:
        batch_op.create_index("automations_of_artist", ["artist_id", "position"], unique=False)

    op.create_table(
        "executions",
        sa.Column("automation_id", sa.Text(), nullable=False),
        sa.Column("nominal_at", sa.Float(precision=53), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("seconds", sa.Float(precision=53), nullable=False),
        sa.Column("wanted", sa.BigInteger(), nullable=False),
        sa.Column("chosen", sa.Text(), nullable=False),
        sa.Column("skipped", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["automation_id"], ["automations.id"], name=op.f("executions_of_automations"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("automation_id", "nominal_at", name=op.f("executions_pk")),
    )
    op.create_table(
        "posts",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("only_stash", sa.Boolean(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("automation_id", sa.Text(), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("wished_at", sa.Float(precision=53), nullable=True),
        sa.Column("due_at", sa.Float(precision=53), nullable=True),
        sa.Column("sent_at", sa.Float(precision=53), nullable=True),
        sa.Column("published_at", sa.Float(precision=53), nullable=True),
        sa.Column("itemid", sa.BigInteger(), nullable=True),
        sa.Column("deviationid", sa.Text(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("advice", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.Column("changed_at", sa.Float(precision=53), nullable=False),
        sa.CheckConstraint(
            "state <> 'published' OR (published_at IS NOT NULL AND itemid IS NOT NULL)",
            name=op.f("posts_published_is_somewhere"),
        ),
        sa.CheckConstraint(
            "state IN ('review', 'draft', 'scheduled', 'publishing', 'published', 'failed', 'unknown', 'cancelled')",
            name=op.f("posts_state"),
        ),
        sa.CheckConstraint(
            "state NOT IN ('scheduled', 'publishing', 'unknown') OR (job_id IS NOT NULL AND due_at IS NOT NULL)",
            name=op.f("posts_open_has_job"),
        ),
        sa.CheckConstraint("wished_at IS NULL OR due_at >= wished_at", name=op.f("posts_never_earlier")),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("posts_of_artists"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["automation_id"], ["automations.id"], name=op.f("posts_of_automations"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("posts_pk")),
    )
    with op.batch_alter_table("posts", schema=None) as batch_op:
        batch_op.create_index("posts_by_change", ["artist_id", "changed_at", "id"], unique=False)
        batch_op.create_index("posts_by_job", ["job_id"], unique=False)
        batch_op.create_index("posts_of_artist", ["artist_id", "state", "due_at", "id"], unique=False)

    op.create_table(
        "files",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("post_id", sa.Text(), nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("alt", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("preview_key", sa.Text(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("width", sa.BigInteger(), nullable=True),
        sa.Column("height", sa.BigInteger(), nullable=True),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.Column("deleted_at", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("files_of_artists"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["post_id"], ["posts.id"], name=op.f("files_of_posts"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("files_pk")),
    )
    with op.batch_alter_table("files", schema=None) as batch_op:
        batch_op.create_index(
            "files_deleted",
            ["deleted_at"],
            unique=False,
            sqlite_where=sa.text("deleted_at IS NOT NULL"),
            postgresql_where=sa.text("deleted_at IS NOT NULL"),
        )
        batch_op.create_index("files_of_artist", ["artist_id", "sha256"], unique=False)
        batch_op.create_index("files_of_post", ["post_id", "position"], unique=False)

    op.create_table(
        "happenings",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("post_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name=op.f("happenings_of_posts"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("happenings_pk")),
    )
    with op.batch_alter_table("happenings", schema=None) as batch_op:
        batch_op.create_index("happenings_of_post", ["post_id", "id"], unique=False)

    op.create_table(
        "receipts",
        sa.Column("post_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("story", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name=op.f("receipts_of_posts"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("post_id", name=op.f("receipts_pk")),
    )
    op.create_table(
        "sales",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("artist_id", sa.Text(), nullable=False),
        sa.Column("post_id", sa.Text(), nullable=False),
        sa.Column("preset_id", sa.Text(), nullable=True),
        sa.Column("price", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("leased_until", sa.Float(precision=53), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("made_at", sa.Float(precision=53), nullable=False),
        sa.Column("ended_at", sa.Float(precision=53), nullable=True),
        sa.CheckConstraint(
            "(state = 'processing') = (leased_until IS NOT NULL)", name=op.f("sales_processing_has_lease")
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'processing', 'completed', 'failed', 'skipped')", name=op.f("sales_state")
        ),
        sa.CheckConstraint("attempts BETWEEN 0 AND 3", name=op.f("sales_attempts")),
        sa.ForeignKeyConstraint(
            ["artist_id"], ["artists.id"], name=op.f("sales_of_artists"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["post_id"], ["posts.id"], name=op.f("sales_of_posts"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["preset_id"], ["presets.id"], name=op.f("sales_of_presets"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("sales_pk")),
        sa.UniqueConstraint("post_id", name=op.f("sales_once_post_id")),
    )
    with op.batch_alter_table("sales", schema=None) as batch_op:
        batch_op.create_index("sales_for_next", ["artist_id", "state", "made_at"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("sales", schema=None) as batch_op:
        batch_op.drop_index("sales_for_next")

    op.drop_table("sales")
    op.drop_table("receipts")
    with op.batch_alter_table("happenings", schema=None) as batch_op:
        batch_op.drop_index("happenings_of_post")

    op.drop_table("happenings")
    with op.batch_alter_table("files", schema=None) as batch_op:
        batch_op.drop_index("files_of_post")
        batch_op.drop_index("files_of_artist")
        batch_op.drop_index(
            "files_deleted",
            sqlite_where=sa.text("deleted_at IS NOT NULL"),
            postgresql_where=sa.text("deleted_at IS NOT NULL"),
        )

    op.drop_table("files")
    with op.batch_alter_table("posts", schema=None) as batch_op:
        batch_op.drop_index("posts_of_artist")
        batch_op.drop_index("posts_by_job")
        batch_op.drop_index("posts_by_change")

    op.drop_table("posts")
    op.drop_table("executions")
    with op.batch_alter_table("automations", schema=None) as batch_op:
        batch_op.drop_index("automations_of_artist")

    op.drop_table("automations")
    op.drop_table("templates")
    op.drop_table("presets")
    op.drop_table("notices")
    with op.batch_alter_table("logins", schema=None) as batch_op:
        batch_op.drop_index("logins_that_end")

    op.drop_table("logins")
    with op.batch_alter_table("exports", schema=None) as batch_op:
        batch_op.drop_index("exports_of_artist")

    op.drop_table("exports")
    op.drop_table("api_keys")
    op.drop_table("artists")
