"""A post's details as JSON of its row, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from publisher.domain.posts import Details


def packed(details: Details) -> str:
    """Without the title, which has a column of its own."""
    fields = asdict(details)
    del fields["title"]
    return msgspec.json.encode(fields).decode()


def unpacked(title: str, text: str) -> Details:
    fields: dict[str, Any] = msgspec.json.decode(text)
    return msgspec.convert({**fields, "title": title}, Details)
