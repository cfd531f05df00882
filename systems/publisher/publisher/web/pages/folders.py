"""The artist's gallery folders, for the fields of forms. A gallery that cannot be seen is no reason to show no form."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from publisher.desk import galleries
from publisher.desk.refusals import Refusal
from publisher.web.pages.deviations import age_words
from publisher.web.pages.visitor import Visitor

_PATIENCE = 3.0  # seconds that a form waits for them


@dataclass(frozen=True)
class Folder:
    id: str
    name: str


@dataclass(frozen=True)
class Folders:
    """`age` says when they were seen; empty when they could not be."""

    all: tuple[Folder, ...]
    age: str


async def folders_of(visitor: Visitor) -> Folders:
    try:
        async with asyncio.timeout(_PATIENCE):
            found = await galleries.folders(visitor.id)
    except (Refusal, TimeoutError):
        return Folders((), "")
    return Folders(tuple(Folder(each.folderid, each.name) for each in found.value), age_words(found.age))
