"""The publisher's own tables, step by step, by Alembic."""
