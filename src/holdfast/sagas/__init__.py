"""Sagas: durable functions that can undo themselves."""
