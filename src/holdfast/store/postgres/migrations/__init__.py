"""Numbered migrations; the same numbers in every store."""
