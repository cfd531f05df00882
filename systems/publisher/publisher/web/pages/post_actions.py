"""What an artist does with one post. Each is a form that posts, and leads back to the post with a line about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.pages import Form
from publisher.desk import files, posts, reading, scheduling
from publisher.desk.refusals import Fault, Invalid, Refusal
from publisher.web.pages import details_form, frame
from publisher.web.pages.frame import Notice
from publisher.web.pages.numbers import whole
from publisher.web.pages.post import draw
from publisher.web.pages.times import typed, words_of
from publisher.web.pages.visitor import Visitor

Act = Callable[[Visitor, str, Form], Awaitable[tuple[str, Notice]]]
_NOT_A_TIME = "This is no time. Choose a day and a time of day."


def _saving(act: Act) -> Callable[[Request], Awaitable[Response]]:
    """A route of the draft's form: what was typed is stored first, then `act` is done; what is refused stands beside its field."""

    @frame.page
    async def route(request: Request, visitor: Visitor) -> Response:
        post_id, form = request.path_params["post_id"], await frame.read(request)
        view = await reading.story(visitor.id, post_id)
        try:
            await _save(visitor, post_id, form)
            where, notice = await act(visitor, post_id, form)
        except Invalid as refusal:
            for fault in refusal.faults:
                form.error(fault.field, fault.words)
            view = await reading.story(visitor.id, post_id)
            return await draw(request, visitor, view, _fresh(form, view.post.version), 422)
        except Refusal as refusal:
            frame.leave(request, Notice(refusal.words, "late"))
            return await draw(request, visitor, view, form, 422)
        return frame.go(request, where, notice)

    return route


def _fresh(form: Form, version: int) -> Form:
    """What was typed, over the version that is stored now."""
    found = Form({name: form.all(name) for name in form if name != "version"} | {"version": str(version)})
    for name, words in form.errors.items():
        found.error(name, words)
    return found


async def _save(visitor: Visitor, post_id: str, form: Form) -> None:
    version = whole(form["version"])
    await posts.edit(visitor.id, post_id, details_form.changes_of(form), version=version)
    for name in form:
        if name.startswith("alt-"):
            await files.describe(visitor.id, name.removeprefix("alt-"), form[name].strip())


async def save(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    return f"/posts/{post_id}", Notice("Saved.")


async def schedule(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:
    at = typed(form["at"], visitor.tz)
    if at is None:
        raise Invalid([Fault("at", _NOT_A_TIME)])
    due = await scheduling.schedule(visitor.id, post_id, at)
    words = f"Scheduled: it goes out {words_of(due, visitor.tz)}."
    return f"/posts/{post_id}", Notice(words, undo={"verb": "draft", "items": [[post_id, None]]})


async def publish(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    await scheduling.publish_now(visitor.id, post_id)
    return f"/posts/{post_id}", Notice("It goes out now. This page says when it is there.", "run")


async def approve(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    await scheduling.to_draft(visitor.id, post_id)
    return f"/posts/{post_id}", Notice("Approved: it is a draft of yours.")


def _doing(act: Act) -> Callable[[Request], Awaitable[Response]]:
    """A route of a single button."""

    @frame.page
    async def route(request: Request, visitor: Visitor) -> Response:
        where, notice = await act(visitor, request.path_params["post_id"], await frame.read(request))
        return frame.go(request, where, notice)

    return route


async def move(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:
    at = typed(form["at"], visitor.tz)
    if at is None:
        raise Invalid([Fault("at", _NOT_A_TIME)])
    before = (await posts.get(visitor.id, post_id)).wished_at
    due = await scheduling.move(visitor.id, post_id, at)
    undo = {"verb": "move", "items": [[post_id, before]]}
    return f"/posts/{post_id}", Notice(f"It goes out {words_of(due, visitor.tz)}.", undo=undo)


async def cancel(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    before = (await posts.get(visitor.id, post_id)).wished_at
    await scheduling.cancel(visitor.id, post_id)
    undo = {"verb": "schedule", "items": [[post_id, before]]}
    return f"/posts/{post_id}", Notice("Cancelled: it is not published.", "off", undo=undo)


async def again(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    await scheduling.try_again(visitor.id, post_id)
    return f"/posts/{post_id}", Notice("It is tried again now.", "run")


async def decide(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:
    """Both choices weigh the same: it is there, or it is sent again."""
    if form["done"] == "no":
        await scheduling.decide(visitor.id, post_id, done=False)
        return f"/posts/{post_id}", Notice("It is sent again.", "run")
    deviationid, _, url = form["which"].partition(" ")
    if form["which"] in ("", "other"):
        deviationid, url = "", form["url"].strip()
    if not url.startswith(("https://", "http://")):
        raise Invalid(
            [Fault("url", "Choose which post it is, or give its address on DeviantArt. Nothing was changed.")]
        )
    await scheduling.decide(visitor.id, post_id, done=True, deviationid=deviationid or None, url=url)
    return f"/posts/{post_id}", Notice("It is published: thank you for looking.")


async def draft(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    await scheduling.to_draft(visitor.id, post_id)
    return f"/posts/{post_id}", Notice("It is a draft again.")


async def duplicate(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    made = await posts.duplicate(visitor.id, post_id)
    return f"/posts/{made}", Notice("This is the copy: a draft of its own.")


async def split(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    made = await posts.split(visitor.id, post_id)
    return "/drafts", Notice(f"Split into {len(made)} drafts, one for each file.")


async def delete(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    state = (await posts.get(visitor.id, post_id)).state
    await posts.delete(visitor.id, post_id)
    words = "Deleted. Its files can be had back for 7 days."
    return ("/drafts" if state == "draft" else "/posts"), Notice(words, "off")


async def approve_one(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    title = (await posts.get(visitor.id, post_id)).title
    await scheduling.to_draft(visitor.id, post_id)
    return "/review", Notice(f"“{title}” is approved: it is a draft of yours.")


async def reject(visitor: Visitor, post_id: str, form: Form) -> tuple[str, Notice]:  # noqa: ARG001
    await posts.reject(visitor.id, [post_id])
    return "/review", Notice("Rejected. Its file can be had back for 7 days.", "off")


@frame.page
async def remove_file(request: Request, visitor: Visitor) -> Response:
    post_id, file_id = request.path_params["post_id"], request.path_params["file_id"]
    await posts.get(visitor.id, post_id)
    await files.delete(visitor.id, file_id)
    undo = {"verb": "restore", "items": [[file_id, None]]}
    return frame.go(request, f"/posts/{post_id}", Notice("The file is removed.", "off", undo=undo))


_SAVING: dict[str, Act] = {"": save, "/schedule": schedule, "/publish-draft": publish, "/approve": approve}
_DOING: dict[str, Act] = {
    "/move": move, "/cancel": cancel, "/again": again, "/decide": decide, "/draft": draft, "/publish": publish,
    "/duplicate": duplicate, "/split": split, "/delete": delete, "/reject": reject, "/approve-one": approve_one, "/schedule-again": schedule,
}  # fmt: skip
routes = [
    *(Route(f"/posts/{{post_id}}{path}", _saving(act), methods=["POST"]) for path, act in _SAVING.items()),
    *(Route(f"/posts/{{post_id}}{path}", _doing(act), methods=["POST"]) for path, act in _DOING.items()),
    Route("/posts/{post_id}/files/{file_id}/delete", remove_file, methods=["POST"]),
]
