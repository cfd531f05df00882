"""Compare job table designs with raw SQL verbs, on PostgreSQL and SQLite, against the raw limit of the same run."""
