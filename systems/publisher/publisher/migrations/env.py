"""What Alembic runs: the publisher's own tables, on Holdfast's connections, on both stores."""

from __future__ import annotations

from holdfast.sqlalchemy.migrations import run_migrations
from publisher.core import hf
from publisher.tables import Base

run_migrations(hf, Base.metadata)
