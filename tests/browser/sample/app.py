"""The sample app: an overview that follows, the sheet of all parts, a form, a table by pages."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from holdfast.web.pages import Column, Cursor, Form, Pages, WithPages
from sample import shown

HERE = Path(__file__).parent
NAV = [
    ("Overview", "/", "home"),
    ("Sheet", "/sheet", "layers"),
    ("Jobs", "/jobs", "list"),
    ("Form", "/form", "file"),
    ("Empty", "/empty", "mail"),
    ("Month", "/month", "calendar"),
]


class State:
    """What the tests change."""

    def __init__(self):
        self.count, self.names, self.asked, self.answered = 0, ["ada", "eve"], 0, []


state = State()


def context(request):
    nav = [{"label": label, "href": pages.address(request, path), "icon": icon} for label, path, icon in NAV]
    nav[2] |= {"count": 1_234_567}
    nav[4:4] = [{"group": "Parts"}]
    nav[5] |= {"count": 3, "state": "unknown"}
    shown_now = {"now": shown.NOW} if "SAMPLE_FIXED" in os.environ else {}
    return {"nav": nav, "shown": shown, **shown_now}


pages = Pages(
    HERE / "templates",
    follow=float(os.environ.get("SAMPLE_FOLLOW", "2")),
    context=context,
    zone=os.environ.get("SAMPLE_ZONE"),
)


async def overview(request):
    state.asked += "x-holdfast-regions" in request.headers
    answer = pages.render(request, "overview.html", {"count": state.count, "names": state.names})
    state.answered.append(answer.status_code)
    return answer


async def sheet(request):
    return pages.render(request, "sheet.html", {"form": _form()})


def _form():
    form = Form(
        {"title": "Glass orchard", "rate": "5", "starts": "25:10", "free": "yes", "on": "yes", "order": "old"}
    )
    form.error("starts", "25:10 is not a time. Use 00:00 to 23:59.")
    return form


async def jobs(request):
    cursor = Cursor(request, size=20)
    found = [number for number in range(1, 56) if str(number).startswith(request.query_params.get("q", ""))]
    if cursor.key:
        [key] = cursor.key
        found = [each for each in found if each > key] if not cursor.is_backwards else [each for each in found[::-1] if each < key]  # fmt: skip
    rows = cursor.rows(found[: cursor.limit], key=lambda number: (number,), total="55")
    columns = [Column("Job", sort="at"), Column("Square", "right")]
    return pages.render(
        request, "jobs.html", {"rows": rows, "columns": columns, "q": request.query_params.get("q", "")}
    )


async def form(request):
    filled = Form({"name": "", "about": ""})
    if request.method == "POST":
        filled = await Form.read(request)
        with suppress(ValueError):
            int(filled["name"])
            filled.error("name", f"{filled['name']} is a number. Write a name.")
        if not filled["name"]:
            filled.error("name", "The name is empty. Write one.")
        if filled.ok:
            state.names.append(filled["name"])
            return pages.redirect(request, "/form", tell=f"{filled['name']} is added", back=filled["back"])
    return pages.render(
        request, "form.html", {"form": filled, "names": state.names}, status=200 if filled.ok else 422
    )


async def discard(request):
    state.names.clear()
    return pages.redirect(request, "/", tell="2 names are discarded")


async def empty(request):
    return pages.render(request, "empty.html")


async def month(request):
    return pages.render(request, "month.html", {"month": shown.november()})


async def nasty(request):
    """Every part, with one text in every place that takes one."""
    text = request.query_params["x"]
    return pages.render(
        request, "nasty.html", {"x": text, "form": nasty_form(text), "drawn": shown.drawn(text)}
    )


def nasty_form(text):
    form = Form({"field": text, "area": text, "choice": text, "radio": text, "check": text})
    for name in form:
        form.error(name, text)
    return form


async def bare(request):
    """For swap.js alone: a page with the modules, and nothing that follows."""
    return pages.render(request, "bare.html")


async def change(request):
    """Tests speak to the state of this process."""
    if "count" in request.query_params:
        state.count = int(request.query_params["count"])
    if "names" in request.query_params:
        state.names = request.query_params["names"].split(",")
    return PlainTextResponse(f"{state.asked} {','.join(map(str, state.answered[-10:]))}")


def give_token(inner):
    async def with_token(scope, receive, send):
        if scope["type"] == "http":
            scope["holdfast.csrf"] = lambda: "token-of-the-session"
        await inner(scope, receive, send)

    return with_token


routes = [
    Route("/", overview),
    Route("/sheet", sheet),
    Route("/jobs", jobs),
    Route("/form", form, methods=["GET", "POST"]),
    Route("/discard", discard, methods=["POST"]),
    Route("/empty", empty),
    Route("/month", month),
    Route("/nasty", nasty),
    Route("/bare", bare),
    Route("/change", change),
    Mount("/deeper", routes=[Route("/form", form, methods=["GET", "POST"])]),
]
app = give_token(WithPages(Starlette(routes=routes), pages))
mounted = Starlette(routes=[Mount("/admin", app)])


def with_policy(inner):
    """A host with a policy of its own: browsers hold to both."""

    async def with_both(scope, receive, send):
        async def telling(message):
            if message["type"] == "http.response.start":
                own = (b"content-security-policy", b"default-src 'self'; object-src 'none'")
                message = {**message, "headers": [*message["headers"], own]}
            await send(message)

        await inner(scope, receive, telling)

    return with_both


hosted = with_policy(mounted)
