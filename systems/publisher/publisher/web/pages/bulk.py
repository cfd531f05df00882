"""What is done to many posts at once: each by itself, with a result for each, and a way back where there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.pages import Form
from publisher.desk import posts, scheduling
from publisher.desk.bulk import Result, many
from publisher.desk.refusals import Fault, Invalid
from publisher.desk.rows import PostRow
from publisher.web.pages import frame
from publisher.web.pages.details_form import tags_of
from publisher.web.pages.frame import Notice
from publisher.web.pages.numbers import whole
from publisher.web.pages.times import typed, words_of
from publisher.web.pages.visitor import Visitor

MOST = 200  # posts at once
_UNITS = {"hours": 3600.0, "days": 86_400.0}
Done = tuple[list[Result], dict[str, Any] | None]
Act = Callable[[Visitor, list[PostRow], Form], Awaitable[Done]]


@frame.page
async def bulk(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    ids = list(dict.fromkeys(form.all("post")))
    act = _ACTS.get(form["do"])
    if act is None or not ids:
        return frame.back(request, Notice("Choose some posts first.", "late"))
    if len(ids) > MOST:
        return frame.back(request, Notice(f"Choose at most {MOST} posts at a time.", "late"))
    found = [await posts.get(visitor.id, post_id) for post_id in ids]
    verb, run = act
    results, undo = await run(visitor, found, form)
    return frame.back(request, _notice(verb, found, results, undo))


def _notice(
    verb: str, found: Sequence[PostRow], results: Sequence[Result], undo: dict[str, Any] | None
) -> Notice:
    """How many went well, and why the others did not."""
    titles = {post.id: post.title or "Untitled" for post in found}
    well = [each for each in results if each.ok]
    lines = [f"{titles[each.post_id]}: {each.words or verb}" for each in results]
    if undo is not None:
        kept = {each.post_id for each in well}
        undo = {**undo, "items": [item for item in undo["items"] if item[0] in kept]}
    posts_word = "post" if len(results) == 1 else "posts"
    if len(well) == len(results):
        return Notice(f"{len(well)} {posts_word} {verb}.", lines=lines if any(each.words for each in well) else [], undo=undo)  # fmt: skip
    words = f"{len(well)} of {len(results)} {posts_word} {verb}; {len(results) - len(well)} could not be."
    return Notice(words, "late", lines=lines, undo=undo if well else None)


# --- what is edited ---


async def tag(visitor: Visitor, found: list[PostRow], form: Form) -> Done:
    """Added to those that are there, or in place of them."""
    wanted = tags_of(form["tags"])
    if not wanted:
        raise Invalid([Fault("tags", "Write some tags first, with commas between.")])
    keeps = form["tags_how"] != "replace"
    changes = {post.id: {"tags": [*post.told.tags, *wanted] if keeps else list(wanted)} for post in found}
    before = [[post.id, {"tags": list(post.told.tags)}] for post in found]
    return await _edited(visitor, changes), {"verb": "edit", "items": before}


async def describe(visitor: Visitor, found: list[PostRow], form: Form) -> Done:
    """Where there is no text; or everywhere."""
    text = form["description"]
    if not text.strip():
        raise Invalid([Fault("description", "Write a description first.")])
    chosen = [post for post in found if form["description_how"] == "replace" or not post.told.description]
    before = [[post.id, {"description": post.told.description}] for post in chosen]
    done = await _edited(visitor, {post.id: {"description": text} for post in chosen})
    others = [
        Result(post.id, ok=True, words="has a text, which stays") for post in found if post not in chosen
    ]
    return [*done, *others], {"verb": "edit", "items": before}


async def answer(visitor: Visitor, found: list[PostRow], form: Form) -> Done:
    """Mature or not, made with AI or not, a folder, the agreement: only what was said."""
    changes: dict[str, Any] = {}
    if form["mature"]:
        changes |= {"mature": form["mature"] != "no", "maturity": form["mature"] if form["mature"] != "no" else None}  # fmt: skip
    if form["ai_made"]:
        changes["ai_made"] = form["ai_made"] == "yes"
    if form["gallery"]:
        changes["galleries"] = [form["gallery"]]
    if form["agreed"] == "yes":
        changes["agreed"] = True
    if not changes:
        raise Invalid([Fault("mature", "Answer something first.")])
    before = [[post.id, _before(post, changes)] for post in found]
    return await _edited(visitor, {post.id: changes for post in found}), {"verb": "edit", "items": before}


def _before(post: PostRow, changes: dict[str, Any]) -> dict[str, Any]:
    told = post.told
    found = {name: getattr(told, name) for name in changes}
    if "galleries" in found:
        found["galleries"] = list(told.galleries)
    return found


async def _edited(visitor: Visitor, changes: dict[str, dict[str, Any]]) -> list[Result]:
    return await many(list(changes), lambda post_id: posts.edit(visitor.id, post_id, changes[post_id]))


# --- when ---


async def schedule(visitor: Visitor, found: list[PostRow], form: Form) -> Done:
    """One after the other, from a first time on, with the same time between."""
    first = typed(form["first"], visitor.tz)
    if first is None:
        raise Invalid([Fault("first", "Choose the first day and time.")])
    number = whole(form["every"], 1, 500)
    if number is None:
        raise Invalid([Fault("every", "Say how far apart: a whole number from 1 to 500.")])
    apart = number * _UNITS.get(form["unit"], 86_400.0)
    times = {post.id: first + step * apart for step, post in enumerate(found)}
    due: dict[str, float] = {}

    async def one(post_id: str) -> None:
        due[post_id] = await scheduling.schedule(visitor.id, post_id, times[post_id])

    results = [
        Result(each.post_id, each.ok, words_of(due[each.post_id], visitor.tz) if each.ok else each.words)
        for each in await many(list(times), one)
    ]
    return results, {"verb": "draft", "items": [[post.id, None] for post in found]}


async def shift(visitor: Visitor, found: list[PostRow], form: Form) -> Done:
    """The same time of day, so many days later or earlier."""
    days = whole(form["days"], -365, 365)
    if not days:
        raise Invalid([Fault("days", "Say by how many days: 1 to 365, or -1 to -365 for earlier.")])
    before = [[post.id, post.wished_at] for post in found]
    results = await scheduling.shift(visitor.id, [post.id for post in found], days)
    return results, {"verb": "move", "items": before}


async def cancel(visitor: Visitor, found: list[PostRow], form: Form) -> Done:  # noqa: ARG001
    before = [[post.id, post.wished_at] for post in found]
    results = await many([post.id for post in found], lambda post_id: scheduling.cancel(visitor.id, post_id))
    return results, {"verb": "schedule", "items": before}


# --- away, or in ---


async def delete(visitor: Visitor, found: list[PostRow], form: Form) -> Done:  # noqa: ARG001
    return await posts.delete_many(visitor.id, [post.id for post in found]), None


async def approve(visitor: Visitor, found: list[PostRow], form: Form) -> Done:  # noqa: ARG001
    return await posts.approve(visitor.id, [post.id for post in found]), None


async def reject(visitor: Visitor, found: list[PostRow], form: Form) -> Done:  # noqa: ARG001
    return await posts.reject(visitor.id, [post.id for post in found]), None


_ACTS: dict[str, tuple[str, Act]] = {
    "tags": ("tagged", tag),
    "description": ("described", describe),
    "answers": ("changed", answer),
    "schedule": ("scheduled", schedule),
    "shift": ("shifted", shift),
    "cancel": ("cancelled", cancel),
    "delete": ("deleted: their files can be had back for 7 days", delete),
    "approve": ("approved: they are drafts now", approve),
    "reject": ("rejected: their files can be had back for 7 days", reject),
}
routes = [Route("/bulk", bulk, methods=["POST"])]
