"""The steps of the tables, oldest first."""
