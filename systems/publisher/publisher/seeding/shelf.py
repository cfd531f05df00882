"""What else the seeded artist has: templates, prices, entries of the sale queue, automations."""

from __future__ import annotations

from publisher.desk import automations, presets, reading, sales, templates
from publisher.domain.states import State

_TEMPLATES = (
    ("tags", "Harbour set", "harbour, gouache, lantern, night, water"),
    ("tags", "Portraits", "portrait, ink, people, study"),
    ("description", "Paper and size", "Gouache and ink on paper, 30 by 40 cm.\n\nPrints are in my shop."),
    ("comment", "Thank you", "Thank you for looking. The next one of this set comes on Friday."),
)


async def fill(artist_id: str) -> None:
    for kind, name, text in _TEMPLATES:
        await templates.make(artist_id, kind, name, text)
    await _automate(artist_id)
    usual = await presets.make(artist_id, "Small original", 7_500, 7_500, is_default=True)
    await presets.make(artist_id, "Large original", 18_000, 32_000)
    await _sell(artist_id, usual)


async def _automate(artist_id: str) -> None:
    """Two that run, one that rests."""
    evenings = await automations.make(
        artist_id,
        {
            "name": "Weekday evenings", "selection": "fifo", "colour": "#a12c6c",
            "rules": [{"kind": "fixed_time", "clock": "18:00", "weekdays": [0, 1, 2, 3, 4]}],
            "defaults": {"tags": {"value": ["gouache", "original"]}, "comments": {"value": True, "when": "always"}},
        },
    )  # fmt: skip
    slow = await automations.make(
        artist_id,
        {
            "name": "Portraits, slowly", "selection": "random", "jitter_high": 1800,
            "rules": [{"kind": "interval", "minutes": 4320}, {"kind": "daily_quota", "posts": 1}],
            "agreement": "all",
        },
    )  # fmt: skip
    await automations.make(
        artist_id, {"name": "Holiday pace", "rules": [{"kind": "daily_quota", "posts": 2}]}
    )
    await automations.toggle(artist_id, evenings, is_on=True)
    await automations.toggle(artist_id, slow, is_on=True)


async def _sell(artist_id: str, preset_id: str) -> None:
    """Some wait, one was sold, one was not."""
    published = await reading.listing(artist_id, states=[State.PUBLISHED], limit=6)
    await sales.by_hand(artist_id, [post.id for post in published], preset_id)
    first = await sales.next(artist_id, "shop-tool")
    if first is not None:
        await sales.complete(artist_id, first.id, first.token)
    for _ in range(3):
        entry = await sales.next(artist_id, "shop-tool")
        if entry is not None:
            await sales.fail(
                artist_id, entry.id, entry.token, "The page of this deviation asked for a login."
            )
