"""Browsing: deviations of others, made up from the day, the tag or the topic, so that the same question has the same answer."""

from __future__ import annotations

import hashlib
import random
from typing import Any

from simulators.deviantart import drawing
from simulators.deviantart.calls import Call
from simulators.deviantart.gallery import page

_WORDS = (
    "Glass",
    "Orchard",
    "Night",
    "Ferry",
    "Amber",
    "Lantern",
    "Hollow",
    "Tide",
    "Ember",
    "Quiet",
    "Fox",
    "Spire",
)
_TOPICS = ("Digital Art", "Photography", "Traditional Art", "Fan Art", "Crafts", "Comics")
_MANY = 60


async def daily(call: Call) -> dict[str, Any]:
    """`GET /browse/dailydeviations`: all of a day, without pages."""
    return {"results": _made(call, f"day {call.text('date') or 'today'}", 12)}


async def tags(call: Call) -> dict[str, Any]:
    return page(call, _made(call, f"tag {call.text('tag')}", _MANY), most=50)


async def tag_names(call: Call) -> dict[str, Any]:
    begin = (call.text("tag_name") or "").lower()
    return {"results": [{"tag_name": word.lower()} for word in _WORDS if word.lower().startswith(begin)]}


async def topic(call: Call) -> dict[str, Any]:
    return page(call, _made(call, f"topic {call.text('topic')}", _MANY), most=24)


async def topics(call: Call) -> dict[str, Any]:
    found = [{"name": name, "canonical_name": name.lower().replace(" ", "-")} for name in _TOPICS]
    return page(call, found, most=10)


async def home(call: Call) -> dict[str, Any]:
    return page(call, _made(call, "home", _MANY), most=24)


def _made(call: Call, about: str, number: int) -> list[dict[str, Any]]:
    chance = random.Random(hashlib.sha256(about.encode()).digest())
    return [_one(call, chance) for _ in range(number)]


def _one(call: Call, chance: random.Random) -> dict[str, Any]:
    title = " ".join(chance.sample(_WORDS, 2))
    number = chance.randrange(10**9)
    address = (
        f"https://www.deviantart.com/somebody-{number % 97}/art/{title.lower().replace(' ', '-')}-{number}"
    )
    return {
        "deviationid": f"{chance.getrandbits(128):032X}",
        "url": address,
        "title": title,
        "author": {"username": f"somebody-{number % 97}"},
        "stats": {"comments": number % 40, "favourites": number % 900},
        "published_time": str(1_760_000_000 + number % 10_000_000),
        "is_mature": False,
        "thumbs": [
            {"src": drawing.address(call.request, address), "width": drawing.WIDTH, "height": drawing.HEIGHT}
        ],
    }
