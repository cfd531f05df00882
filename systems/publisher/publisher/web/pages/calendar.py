"""The calendar: a month, a week or a list, with one day beside it; and moving a post to another time."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from publisher.desk import posts, reading, scheduling
from publisher.web.pages import frame
from publisher.web.pages.cards import LOOKS, WORDS, Card, cards
from publisher.web.pages.days import VIEWS, Day, days_of, names_of, span_of
from publisher.web.pages.times import begin_of, day_of, typed, typed_day, words_of
from publisher.web.pages.visitor import Visitor
from publisher.web.pages.waits import why_of


@frame.page
async def calendar(request: Request, visitor: Visitor) -> Response:
    query = request.query_params
    view = query.get("view", "")
    now = day_of(visitor.now, visitor.tz)
    day = typed_day(query.get("day", ""), now)
    span = span_of(view if view in VIEWS else "month", typed_day(query.get("at", ""), day))
    look = query.get("look", "") if query.get("look") in LOOKS else ""
    found = await _between(visitor, span.begin, span.end)
    shown = [card for card in found if not look or card.look == look]
    of_month = [card for card in found if card.at and span.has(day_of(card.at, visitor.tz))]
    by_day = days_of(span, shown, visitor.tz, now)
    counted = Counter(card.look for card in of_month)
    values = {
        "view": span.view, "is_chosen": bool(view), "span": span, "look": look, "days": by_day,
        "weeks": [by_day[start : start + 7] for start in range(0, len(by_day), 7)],
        "filters": [(each, WORDS[each], counted[each]) for each in LOOKS],
        "day": day, "is_today": day == now, "today": now, "strip": _strip(await _week(visitor, day), visitor, day, now),
        "panel": await _panel(visitor, day, found, look),
        **names_of(span, day),
    }  # fmt: skip
    if span.view == "list":
        values["whys"] = {card.id: await why_of(card, visitor) for card in shown[:100]}
    return frame.render(request, "calendar.html", values)


async def _between(visitor: Visitor, begin: date, end: date) -> list[Card]:
    rows = await reading.between(visitor.id, begin_of(begin, visitor.tz), begin_of(end, visitor.tz))
    return await cards(rows, visitor)


async def _week(visitor: Visitor, day: date) -> list[Card]:
    monday = day - timedelta(days=day.weekday())
    return await _between(visitor, monday, monday + timedelta(days=7))


def _strip(found: list[Card], visitor: Visitor, day: date, now: date) -> list[Day]:
    return [
        each
        for each in days_of(span_of("week", day), found, visitor.tz, now)
        if each.day.isocalendar()[:2] == day.isocalendar()[:2]
    ]


async def _panel(visitor: Visitor, day: date, found: list[Card], look: str) -> list[tuple[Card, str]]:
    """The posts of one day, with their reasons."""
    of_day = [card for card in found if card.at and day_of(card.at, visitor.tz) == day]
    if not of_day:
        of_day = await _between(visitor, day, day + timedelta(days=1))
    return [(card, await why_of(card, visitor)) for card in of_day[:40] if not look or card.look == look]


@frame.page
async def move(request: Request, visitor: Visitor) -> Response:
    """Another time for one post: what the dialog sends, by mouse and by keyboard, and the form on a post's page."""
    form = await frame.read(request)
    at, back = typed(form["at"], visitor.tz), form["back"]
    post = await posts.get(visitor.id, form["post"])
    if at is None:
        return frame.back(
            request, frame.Notice(f"{form['at']!r} is no time. Choose a day and a time.", "dead")
        )
    await scheduling.move(visitor.id, post.id, at)
    undo = {"verb": "move", "items": [[post.id, post.wished_at]]}
    later = f", up to {visitor.jitter // 60} min later" if visitor.jitter >= 60 else ""
    words = f"“{post.title}” goes out {words_of(at, visitor.tz)}{later}."
    return frame.go(request, "/calendar", frame.Notice(words, undo=undo), query=back)


routes = [Route("/calendar", calendar), Route("/calendar/move", move, methods=["POST"])]
