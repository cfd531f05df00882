"""What Alembic runs: the portal's own tables, on Holdfast's connections, on both stores."""

from __future__ import annotations

from admissions.core import hf
from admissions.tables import Base
from holdfast.sqlalchemy.migrations import run_migrations

run_migrations(hf, Base.metadata)
