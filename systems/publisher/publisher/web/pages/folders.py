"""The artist's gallery folders, for the fields of forms. A gallery that cannot be seen is no reason to show no form."""

from __future__ import annotations

from dataclasses import dataclass

from publisher.web.pages.visitor import Visitor


@dataclass(frozen=True)
class Folder:
    id: str
    name: str


async def folders_of(visitor: Visitor) -> list[Folder]:  # noqa: ARG001
    return []
