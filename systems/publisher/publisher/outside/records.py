"""What DeviantArt answers, as far as we read it."""

from __future__ import annotations

from typing import Any

import msgspec


class Item(msgspec.Struct, frozen=True):
    """What sta.sh has stored."""

    itemid: int
    stackid: int = 0


class Published(msgspec.Struct, frozen=True):
    deviationid: str
    url: str


class Deviation(msgspec.Struct, frozen=True):
    deviationid: str
    title: str = ""
    url: str = ""
    published_time: str = "0"
    is_deleted: bool = False
    is_mature: bool = False
    thumbs: list[dict[str, Any]] = []
    author: dict[str, Any] = {}
    stats: dict[str, int] = {}

    @property
    def published_at(self) -> float:
        return float(self.published_time or 0)


class Page(msgspec.Struct, frozen=True):
    """One page of deviations."""

    results: list[Deviation] = []
    has_more: bool = False
    next_offset: int | None = None


class Folder(msgspec.Struct, frozen=True):
    folderid: str
    name: str
    parent: str | None = None
    size: int | None = None


class FolderPage(msgspec.Struct, frozen=True):
    results: list[Folder] = []
    has_more: bool = False


class Tag(msgspec.Struct, frozen=True):
    tag_name: str


class Tags(msgspec.Struct, frozen=True):
    results: list[Tag] = []


class Topic(msgspec.Struct, frozen=True):
    name: str
    canonical_name: str


class Topics(msgspec.Struct, frozen=True):
    results: list[Topic] = []
    has_more: bool = False


class Whoami(msgspec.Struct, frozen=True):
    userid: str
    username: str
    usericon: str = ""
