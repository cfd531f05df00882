"""The first page: what needs the artist, what goes out next, and how things stand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from publisher.desk import automations, reading, scheduling
from publisher.domain.states import State
from publisher.web.pages import frame
from publisher.web.pages.cards import WORDS, Card, cards, distance
from publisher.web.pages.times import begin_of, day_of, words_of
from publisher.web.pages.visitor import DAY, Visitor
from publisher.web.pages.waits import next_words, why_of

_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_URGENT = ("unknown", "dead", "late", "held", "run", "wait", "ok", "off")  # which dot a day with several gets


@frame.page
async def today(request: Request, visitor: Visitor) -> Response:
    if not visitor.has_posts:
        return RedirectResponse(frame.pages.address(request, "/welcome"), 303)
    needs = [*await reading.needs(visitor.id), *await reading.late(visitor.id, 5)]
    coming = [post for post in await reading.upcoming(visitor.id, 8) if post not in needs][:5]
    last = await reading.listing(visitor.id, states=[State.PUBLISHED], limit=1)
    shown = await cards(needs, visitor)
    values = {
        "greeting": "Today, " + words_of(visitor.now, visitor.tz).partition(",")[0],
        "subline": await _subline(visitor, len(shown)),
        "needs": [(card, await why_of(card, visitor)) for card in shown],
        "coming": [(card, _when(card, visitor)) for card in await cards(coming, visitor)],
        "last": next(iter(await cards(last, visitor)), None),
        "figures": await _figures(visitor),
        "automations": await _automations(visitor),
        "week": await _week(visitor),
    }
    return frame.render(request, "today.html", values)


async def _subline(visitor: Visitor, needing: int) -> str:
    begin = begin_of(day_of(visitor.now, visitor.tz), visitor.tz)
    posts = await reading.between(visitor.id, begin, begin + DAY)
    needs = f"{needing} need{'s' if needing == 1 else ''} you" if needing else "nothing needs you"
    return f"{_counted(len(posts), 'post')} today, {needs}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _when(card: Card, visitor: Visitor) -> str:
    if card.look != "wait" or card.at is None:
        return ""
    return f"In {distance(card.at - visitor.now)}"


async def _figures(visitor: Visitor) -> list[tuple[str, int, str, str]]:
    month = await reading.between(visitor.id, visitor.now - 30 * DAY, visitor.now + 1)
    published = sum(post.state is State.PUBLISHED for post in month)
    return [
        ("Scheduled", visitor.count("scheduled"), "/calendar", "in the calendar"),
        ("Drafts", visitor.count("draft"), "/drafts", "without a date"),
        ("To review", visitor.count("review"), "/review", "sent by your tools"),
        ("Published", published, "/posts", "in the last 30 days"),
        ("In all", visitor.count("published"), "/posts", "since you came"),
    ]


async def _automations(visitor: Visitor) -> list[dict[str, Any]]:
    return [
        {
            "id": each.id,
            "name": each.wishes.name,
            "is_on": each.is_on,
            "note": each.note,
            "next": next_words(each, visitor),
        }
        for each in (await automations.listing(visitor.id))[:5]
    ]


async def _week(visitor: Visitor) -> list[dict[str, Any]]:
    """The strip of days on a phone."""
    now = day_of(visitor.now, visitor.tz)
    monday = now - timedelta(days=now.weekday())
    begin = begin_of(monday, visitor.tz)
    end = begin_of(monday + timedelta(days=7), visitor.tz)
    found = await cards(await reading.between(visitor.id, begin, end), visitor)
    days = []
    for step in range(7):
        day = monday + timedelta(days=step)
        looks = [card.look for card in found if card.at and day_of(card.at, visitor.tz) == day]
        look = min(looks, key=_URGENT.index, default="")
        words = ", ".join(f"{looks.count(each)} {WORDS[each].lower()}" for each in dict.fromkeys(looks))
        days.append(
            {"day": day.isoformat(), "name": _NAMES[step], "number": day.day, "look": look, "words": words, "is_today": day == now}
        )  # fmt: skip
    return days


@frame.page
async def switch(request: Request, visitor: Visitor) -> Response:
    """Publishing on, or off."""
    form = await frame.read(request)
    is_on = form["on"] == "yes"
    await scheduling.switch(visitor.id, is_on)
    words = "Publishing is on." if is_on else "Publishing is off. Nothing goes out until you switch it on."
    return frame.back(request, frame.Notice(words, "ok" if is_on else "held"))


@frame.page
async def more(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
    """What the bar of a phone has no room for."""
    return frame.render(request, "more.html")


routes = [
    Route("/", today),
    Route("/more", more),
    Route("/switch", switch, methods=["POST"]),
]
