"""The portal's own tables, step by step, by Alembic."""
