"""The officers' queue: filters, search, pages by key, saved views, and all that is filtered as CSV."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import Response

from admissions.desk import cases, directory, rounds, views
from admissions.desk.cases import CaseRow
from admissions.desk.refusals import Invalid
from admissions.domain.decisions import Stage
from admissions.domain.states import State
from admissions.web.pages import frame
from admissions.web.pages.frame import Notice
from admissions.web.visitor import Visitor
from admissions.web.words import say
from holdfast.web.pages import Cursor

STATES = tuple(each for each in State if each is not State.DRAFT)
LOOKS = {
    "submitted": "run", "verifying": "run", "needs_files": "dead", "verified": "run", "awaiting_payment": "wait", "paid": "run", "mailed": "run",
    "completed": "ok", "failed": "late", "withdrawn": "off",
}  # fmt: skip
OUTCOMES = {"accept": "ok", "wait_list": "wait", "reject": "off"}
_FILTERS = ("state", "term", "officer", "decision", "q")
_SIZE, _CSV_MOST = 50, 20_000
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a table's program would calculate what begins so


async def show(request: Request, visitor: Visitor) -> Response:
    cursor = Cursor(request, size=_SIZE)
    chosen = _chosen(dict(request.query_params))
    place = place_of(cursor.key)
    before, after = (place, None) if cursor.is_backwards else (None, place)
    found = await cases.queue(**_asked(chosen, visitor), before=before, after=after, limit=cursor.limit)
    rows = cursor.rows(found, key=lambda each: (each.submitted_at, each.id))
    values = {
        "rows": rows, "chosen": chosen, "states": STATES, "stages": [str(each) for each in Stage], "looks": LOOKS, "outcomes": OUTCOMES,
        "terms": await rounds.terms(), "officers": await directory.officers(), "views": await views.of(visitor.id),
        "query_words": urlencode(chosen),
    }  # fmt: skip
    return frame.render(request, "desk_queue.html", values)


def _chosen(told: dict[str, str]) -> dict[str, str]:
    """The filters that are set; what is none of ours is left out."""
    found = {name: told.get(name, "").strip()[:100] for name in _FILTERS}
    if found["state"] not in [str(each) for each in STATES]:
        found["state"] = ""
    return {name: value for name, value in found.items() if value}


def _asked(chosen: dict[str, str], visitor: Visitor) -> dict[str, Any]:
    officer = chosen.get("officer")
    return {
        "states": [State(chosen["state"])] if "state" in chosen else (),
        "term_id": chosen.get("term"),
        "officer_id": visitor.id if officer == "me" else officer,
        "decision": chosen.get("decision"),
        "search": chosen.get("q", ""),
    }


def place_of(key: tuple[Any, ...] | None) -> tuple[float, str] | None:
    """What is no place of ours begins at the begin."""
    if key is None or len(key) != 2 or isinstance(key[0], bool) or not isinstance(key[0], int | float) or not isinstance(key[1], str):  # fmt: skip
        return None
    return float(key[0]), key[1]


async def save_view(request: Request, visitor: Visitor) -> Response:
    form = await frame.read(request)
    query = urlencode(_chosen(dict(parse_qsl(form["query"][: views.QUERY_MOST]))))
    try:
        await views.save(visitor.id, form["name"], query)
    except Invalid as refusal:
        return frame.go(request, "/desk", Notice(frame.refused(visitor, refusal), "late"), query=query)
    return frame.go(
        request, "/desk", Notice(say(visitor.language, "view_saved", form["name"].strip())), query=query
    )


async def remove_view(request: Request, visitor: Visitor) -> Response:
    await frame.read(request)
    await views.remove(visitor.id, request.path_params["view_id"])
    return frame.go(request, "/desk", Notice(say(visitor.language, "view_removed"), "off"))


async def as_csv(request: Request, visitor: Visitor) -> Response:
    """All that the filters find, in parts, as a program of tables reads it."""
    asked, out = _asked(_chosen(dict(request.query_params)), visitor), io.StringIO()
    writer = csv.writer(out)
    writer.writerow(
        ["number", "name", "mail", "programme", "term", "state", "arrived", "officer", "outcome", "stage"]
    )
    after, left = None, _CSV_MOST
    while left > 0:
        part = await cases.queue(**asked, after=after, limit=min(1_000, left))
        writer.writerows(_line(each) for each in part)
        left = left - len(part) if len(part) == 1_000 else 0
        after = (part[-1].submitted_at, part[-1].id) if part else None
    return csv_file(out.getvalue(), "applications.csv")


def _line(row: CaseRow) -> list[str]:
    at = datetime.fromtimestamp(row.submitted_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    cells = [row.number, row.name, row.mail, row.programme, row.term, str(row.state), at, row.officer or "", row.outcome or "", row.stage or ""]  # fmt: skip
    return [f"'{each}" if each.startswith(_FORMULA) else each for each in cells]


def csv_file(text: str, name: str) -> Response:
    fields = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response("\ufeff" + text, 200, fields, media_type="text/csv; charset=utf-8")


routes = [
    frame.at("GET /desk", show), frame.at("GET /desk/cases.csv", as_csv),
    frame.at("POST /desk/views", save_view), frame.at("POST /desk/views/{view_id}/remove", remove_view),
]  # fmt: skip
