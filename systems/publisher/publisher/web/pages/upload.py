"""New posts out of files: by a form, and by upload.js, which sends the same form for one file after the other."""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast import within
from holdfast.web import Problem, ProblemError, UploadForm
from publisher.desk import files, posts, reading, uploads
from publisher.desk.refusals import Refusal
from publisher.desk.uploads import Arrival
from publisher.web.pages import frame
from publisher.web.pages.frame import Notice
from publisher.web.pages.visitor import Visitor


@frame.page
async def choose(request: Request, visitor: Visitor) -> Response:
    post_id = request.query_params.get("post", "")
    post = await posts.get(visitor.id, post_id) if post_id else None
    values = {
        "post": post,
        "usage": await files.usage(visitor.id),
        "types": ",".join(uploads.TYPES),
        "most": {"file": uploads.FILE_MOST, "files": uploads.FILES_MOST},
    }
    return frame.render(request, "upload.html", values)


@frame.page
async def receive(request: Request, visitor: Visitor) -> Response:
    """Also asked by a script, which takes JSON."""
    wants_json = request.headers.get("accept", "").startswith("application/json")
    try:
        arrivals, post_id = await _received(request, visitor)
    except ProblemError as error:
        return _refused(request, wants_json, _words(error.problem), error.problem.status)
    except Refusal as refusal:
        return _refused(request, wants_json, refusal.words, refusal.status)
    if wants_json:
        return JSONResponse({"files": [asdict(each) for each in arrivals]}, 201)
    return await _told(request, visitor, arrivals, post_id)


async def _received(request: Request, visitor: Visitor) -> tuple[list[Arrival], str | None]:
    with within(tenant=visitor.id):
        form = await uploads.uploads.receive(request)
    post_id = form.field("post") or None
    arrivals = await uploads.receive(
        visitor.id,
        _files(form),
        mode="one" if form.field("mode") == "one" else "each",
        post_id=post_id,
        again=form.field("again") == "yes",
    )
    return arrivals, post_id


def _files(form: UploadForm) -> list[uploads.Arriving]:
    return [uploads.Arriving(uploads.shown_name(each.filename), each.staged) for each in form.files]


def _words(problem: Problem) -> str:
    told = problem.detail or problem.title
    if problem.code == "TYPE_NOT_TAKEN":  # it begins with the name of the field
        return f"This file {told.partition(' ')[2]} Choose a JPEG, PNG, GIF, WebP, MP4, WebM or MOV."
    return told


def _refused(request: Request, wants_json: bool, words: str, status: int) -> Response:
    if wants_json:
        return JSONResponse({"words": words}, status)
    return frame.go(request, "/upload", Notice(words, "dead"))


async def _told(request: Request, visitor: Visitor, arrivals: list[Arrival], post_id: str | None) -> Response:
    """To the post, when there is one; else to the drafts."""
    made = list(dict.fromkeys(each.post_id for each in arrivals if each.post_id))
    known = [each for each in arrivals if each.file_id is None]
    lines = [
        f"{each.name}: it is there already, in “{await _title(visitor, each.same_as)}”" for each in known
    ]
    if not arrivals:
        return frame.go(request, "/upload", Notice("Choose some files first.", "late"))
    if not made:
        return frame.go(
            request, "/upload", Notice("All of these are there already. Nothing was added.", "late", lines)
        )
    number = len(arrivals) - len(known)
    words = f"{number} file{'' if number == 1 else 's'} added."
    where = f"/posts/{made[0]}" if post_id or len(made) == 1 else "/drafts"
    return frame.go(request, where, Notice(words, "late" if known else "ok", lines))


async def _title(visitor: Visitor, post_id: str | None) -> str:
    if post_id is None:
        return "a post"
    return (await reading.story(visitor.id, post_id)).post.title or "Untitled"


routes = [Route("/upload", choose), Route("/upload", receive, methods=["POST"])]
