"""Posts and files as the API shows them, and the details of a post as it takes them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import msgspec
from pydantic import BaseModel, Field

from publisher.desk import files as shelf
from publisher.desk import reading
from publisher.desk.rows import PostRow
from publisher.domain.posts import Maturity
from publisher.web.api.base import Line, Strict, Text


class License(Strict):
    creative_commons: bool = False
    commercial: bool = False
    modify: Annotated[str, Field(pattern="^(yes|no|share)$")] = "no"


class Changes(Strict):
    """What is left out stays as it is; null takes an answer back."""

    title: Line | None = None
    description: Text | None = None
    tags: Annotated[list[Line], Field(max_length=300)] | None = None
    galleries: Annotated[list[Line], Field(max_length=100)] | None = None
    mature: bool | None = None
    maturity: Annotated[str, Field(pattern=f"^({'|'.join(Maturity)})$")] | None = None
    comments: bool | None = None
    free_download: bool | None = None
    watermark: bool | None = None
    resolution: Annotated[int, Field(ge=0, le=8)] | None = None
    ai_made: bool | None = None
    no_ai: bool | None = None
    license: License | None = None
    agreed: bool | None = None
    only_stash: bool | None = None


NEVER_NULL = ("title", "description", "tags", "galleries", "license", "agreed", "only_stash")


class Result(BaseModel):
    """What became of one of many."""

    post_id: str
    ok: bool
    words: str


class Results(BaseModel):
    results: list[Result]


class Post(BaseModel):
    id: str
    state: str
    title: str
    details: dict[str, Any]
    only_stash: bool
    source: str
    automation_id: str | None
    wished_at: float | None
    due_at: float | None
    published_at: float | None
    deviationid: str | None
    url: str | None
    reason: str
    advice: str
    version: int
    made_at: float
    changed_at: float


class File(BaseModel):
    id: str
    name: str
    alt: str
    type: str
    size: int
    sha256: str
    width: int | None
    height: int | None
    has_preview: bool
    made_at: float
    post_id: str | None = None
    deleted_at: float | None = None


class Line_(BaseModel):  # noqa: N801  a line of history; Line is a type of texts
    at: float
    kind: str
    words: str
    who: str


class Missing(BaseModel):
    name: str
    message: str


class Waiting(BaseModel):
    kind: str
    words: str
    next_try: float | None
    is_late: bool


class PostView(BaseModel):
    """One post with all that its page shows."""

    post: Post
    files: list[File]
    history: list[Line_]
    missing: list[Missing]
    waiting: Waiting | None
    near: list[Post]
    receipt: dict[str, Any] | None


class PostPage(BaseModel):
    """`next` is the cursor of the page behind this one; null: there is none."""

    posts: list[Post]
    next: str | None


def shown(post: PostRow) -> Post:
    told = asdict(post)
    told["details"] = {**asdict(post.told), "title": post.title}
    return Post(**{name: told[name] for name in Post.model_fields})


def shown_file(file: shelf.FileRow | reading.FileRow) -> File:
    told = asdict(file)
    return File(
        **{name: told[name] for name in File.model_fields if name in told},
        has_preview=file.preview_key is not None,
    )


def shown_view(view: reading.PostView) -> PostView:
    return PostView(
        post=shown(view.post),
        files=[shown_file(each) for each in view.files],
        history=[Line_(**asdict(each)) for each in view.history],
        missing=[Missing(**asdict(each)) for each in view.missing],
        waiting=None if view.waiting is None else Waiting(**asdict(view.waiting)),
        near=[shown(each) for each in view.near],
        receipt=None if view.receipt is None else msgspec.json.decode(view.receipt),
    )


def told(results: list[Any]) -> Results:
    return Results(results=[Result(**asdict(each)) for each in results])
