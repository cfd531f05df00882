"""Ids of rows: random, so that nobody can guess those of others."""

from __future__ import annotations

from uuid import uuid4


def new_id() -> str:
    return uuid4().hex
