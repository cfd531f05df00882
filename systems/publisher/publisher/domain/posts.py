"""What a post consists of, and what is still missing before it may be scheduled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

TITLE_MOST = 50  # characters, by DeviantArt
TAGS_MOST = 30
DESCRIPTION_MOST = 65_000
RESOLUTIONS = (0, 1, 2, 3, 4, 5, 6, 7, 8)  # 0 is the original, 8 is 1920 px


class Maturity(StrEnum):
    STRICT = "strict"
    MODERATE = "moderate"


@dataclass(frozen=True)
class License:
    """Creative Commons, or all rights reserved."""

    creative_commons: bool = False
    commercial: bool = False
    modify: str = "no"  # yes, no, share


@dataclass(frozen=True)
class Details:
    """What DeviantArt is told of a post. None: the artist has not said, which is neither yes nor no."""

    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    galleries: tuple[str, ...] = ()
    mature: bool | None = None
    maturity: Maturity | None = None
    comments: bool | None = None
    free_download: bool | None = None
    watermark: bool | None = None
    resolution: int | None = None
    ai_made: bool | None = None
    no_ai: bool | None = None
    license: License = field(default_factory=License)
    agreed: bool = False  # to DeviantArt's submission policy and terms, for this post


@dataclass(frozen=True)
class Missing:
    """One thing that stands between a draft and its schedule. `name` is the field that it belongs to."""

    name: str
    message: str


def missing(details: Details, *, files: int) -> list[Missing]:
    """In the order in which the page shows the fields."""
    return [*_of_files(files), *_of_texts(details), *_of_answers(details), *_of_sizes(details)]


def _of_files(files: int) -> Iterator[Missing]:
    if files == 0:
        yield Missing("files", "Add the file that is to be published.")
    if files > 1:
        told = f"This post has {files} files, and a deviation has one."
        yield Missing("files", f"{told} Keep one, or split it into {files} posts.")


def _of_texts(details: Details) -> Iterator[Missing]:
    title = details.title.strip()
    if not title:
        yield Missing("title", "Give it a title.")
    if (over := len(title) - TITLE_MOST) > 0:
        yield Missing("title", f"The title is {over} characters too long: DeviantArt takes {TITLE_MOST}.")
    if len(details.description) > DESCRIPTION_MOST:
        yield Missing("description", f"The description has more than {DESCRIPTION_MOST:,} characters.")
    if len(details.tags) > TAGS_MOST:
        yield Missing("tags", f"There are {len(details.tags)} tags; DeviantArt takes {TAGS_MOST}.")


def _of_answers(details: Details) -> Iterator[Missing]:
    if details.mature is None:
        yield Missing("mature", "Say whether it is mature content.")
    if details.mature and details.maturity is None:
        yield Missing("maturity", "Say how mature it is: strict or moderate.")
    if details.ai_made is None:
        yield Missing("ai_made", "Say whether it was made with AI.")
    if not details.agreed:
        yield Missing("agreed", "Agree to DeviantArt's submission policy and terms for this post.")


def _of_sizes(details: Details) -> Iterator[Missing]:
    if details.resolution is not None and details.resolution not in RESOLUTIONS:
        sizes = "0 (the original) to 8 (1920 px)"
        yield Missing("resolution", f"{details.resolution} is no display size; take {sizes}.")
    if details.watermark and not details.resolution:
        yield Missing("watermark", "A watermark needs a display size that is smaller than the original.")


_NOT_IN_TAGS = re.compile(r"[^\w]+", re.UNICODE)


def tag(text: str) -> str:
    """As DeviantArt takes it: letters, digits and underscores."""
    return _NOT_IN_TAGS.sub("_", text.strip().lstrip("#")).strip("_")


def tags(texts: list[str]) -> tuple[str, ...]:
    """Each once, in their order, without what leaves nothing."""
    return tuple(dict.fromkeys(made for each in texts if (made := tag(each))))


def for_sale(details: Details) -> Details:
    """What is offered for sale is never given away: smaller, with a watermark, and without a free download."""
    return replace(details, resolution=details.resolution or 8, watermark=True, free_download=False)
