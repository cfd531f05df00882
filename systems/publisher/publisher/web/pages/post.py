"""One post: what it is, what is missing, why it waits, what became of it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.pages import Form
from publisher.desk import reading
from publisher.desk.reading import PostView
from publisher.domain.posts import TAGS_MOST, TITLE_MOST
from publisher.domain.states import EDITABLE, State
from publisher.web.pages import candidates, details_form, frame
from publisher.web.pages.cards import card, look_of
from publisher.web.pages.folders import folders_of
from publisher.web.pages.slots import close_to, next_free
from publisher.web.pages.times import field_of, typed, words_of
from publisher.web.pages.visitor import Visitor
from publisher.web.pages.waits import why_of

_KINDS = {
    "published": "ok", "uploaded": "ok", "sent": "run", "scheduled": "wait", "moved": "wait", "failed": "dead", "refused": "late",
    "unknown": "unknown", "waiting": "late", "cancelled": "off", "decided": "ok", "made": "draft", "draft": "draft",
}  # fmt: skip


@frame.page
async def show(request: Request, visitor: Visitor) -> Response:
    view = await reading.story(visitor.id, request.path_params["post_id"])
    return await draw(request, visitor, view)


async def draw(
    request: Request, visitor: Visitor, view: PostView, form: Form | None = None, status: int = 200
) -> Response:
    """The page; with `form`, what was typed and what is wrong with it."""
    is_open = view.post.state in EDITABLE
    wants_form = view.post.state in (State.DRAFT, State.REVIEW) or "edit" in request.query_params
    if is_open and (wants_form or form is not None):
        return await _draw_form(request, visitor, view, form, status)
    version = _version(view, visitor)
    if (same := frame.pages.unchanged(request, version)) is not None:
        return same  # also so that the gallery is not looked at again and again
    values = await _values(visitor, view)
    values |= {"at_form": await _when_form(visitor, view)}
    if view.post.state is State.UNKNOWN:
        values["found"] = await candidates.found(view.post)
        if values["found"] is None:
            return await draw(request, visitor, await reading.story(visitor.id, view.post.id))
    return frame.render(request, "post.html", values, status=status, version=version)


def _version(view: PostView, visitor: Visitor) -> tuple[object, ...]:
    """What a reader who follows is told of."""
    post, waiting = view.post, view.waiting
    words = (waiting.words, waiting.next_try) if waiting else None
    return post.version, post.state, len(view.history), visitor.is_held, words, look_of(post, visitor)


async def _values(visitor: Visitor, view: PostView) -> dict[str, Any]:
    cover = next(((each.id, each.alt) for each in view.files if each.preview_key), None)
    shown = card(view.post, visitor, cover)
    return {
        "post": view.post, "card": shown, "details": view.post.told, "files": view.files, "missing": view.missing,
        "why": await why_of(shown, visitor), "waiting": view.waiting, "near": view.near,
        "history": [(_KINDS.get(each.kind, "wait"), each.words, _who(each.who), each.at) for each in view.history],
        "folder_names": {each.id: each.name for each in (await folders_of(visitor)).all},
        "most": {"title": TITLE_MOST, "tags": TAGS_MOST},
    }  # fmt: skip


def _who(who: str) -> str:
    return {"you": "by you", "publisher": "", "": "", "tool": "by a tool"}.get(who, f"by {who}")


async def _when_form(visitor: Visitor, view: PostView) -> Form:
    at = view.post.wished_at
    if at is None or at < visitor.now:
        at = await next_free(visitor)
    return Form({"at": field_of(at, visitor.tz)})


async def _draw_form(
    request: Request, visitor: Visitor, view: PostView, form: Form | None, status: int
) -> Response:
    if form is None:
        first = (await _when_form(visitor, view))["at"]
        form = details_form.filled(view.post.told, first, view.post.version)
    at = typed(form["at"], visitor.tz)
    values, folders = await _values(visitor, view), await folders_of(visitor)
    lacking = {each.name for each in view.missing}
    values |= {
        "form": form, "labels": details_form.LABELS, "folders": folders.all, "folder_age": folders.age, "lacking": lacking,
        "close": await close_to(visitor, at, view.post.id) if at else [], "choices": _choices(),
        "checks": _checks(view, visitor), "said_at": words_of(at, visitor.tz) if at else "",
    }  # fmt: skip
    return frame.render(request, "draft.html", values, status=status)


def _choices() -> dict[str, Any]:
    return {
        "unsaid": details_form.UNSAID,
        "sizes": details_form.SIZES,
        "licenses": details_form.LICENSES,
    }


def _checks(view: PostView, visitor: Visitor) -> list[tuple[str, str, str]]:
    """What is there, and what stands between this post and its schedule."""
    told = {each.name: each.message for each in view.missing}
    names = {"files": "File", "title": "Title", "mature": "Mature: answered", "ai_made": "AI: answered", "agreed": "Terms: agreed"}  # fmt: skip
    wrong = {"mature": "Mature: not answered", "ai_made": "AI: not answered", "agreed": "Terms: not agreed"}
    found = [
        ("dead", wrong.get(name, word), told[name]) if name in told else ("ok", word, "")
        for name, word in names.items()
    ]
    found += [
        ("dead", details_form.LABELS.get(name, name), words)
        for name, words in told.items()
        if name not in names
    ]
    login = f"Login: {visitor.login_days} days left" if visitor.is_connected else "Login: wanted again"
    return [*found, ("ok" if visitor.is_connected else "late", login, "")]


routes = [Route("/posts/{post_id}", show)]
