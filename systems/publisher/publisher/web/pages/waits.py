"""Why a post is where it is, in one sentence for its artist."""

from __future__ import annotations

from publisher.desk import waiting
from publisher.desk.automations import AutomationRow
from publisher.domain.states import State
from publisher.web.pages.cards import Card, distance
from publisher.web.pages.times import words_of
from publisher.web.pages.visitor import Visitor


async def why_of(card: Card, visitor: Visitor) -> str:
    """Empty when its state says it all."""
    post = card.row
    match post.state:
        case State.UNKNOWN:
            return post.reason or "We sent it and got no answer. It may be in your gallery."
        case State.FAILED:
            return f"{post.reason} {post.advice}".strip()
        case State.PUBLISHED:
            return _late_words(card)
        case State.SCHEDULED | State.PUBLISHING:
            return await _waiting(card, visitor)
        case _:
            return ""


def _late_words(card: Card) -> str:
    post = card.row
    if post.published_at is None or post.due_at is None or post.published_at < post.due_at + 60:
        return ""
    return f"{distance(post.published_at - post.due_at).capitalize()} late."


async def _waiting(card: Card, visitor: Visitor) -> str:
    if card.look == "wait" and card.at is not None:
        jitter = f", up to {visitor.jitter // 60} min later" if visitor.jitter >= 60 else ""
        return f"In {distance(card.at - visitor.now)}{jitter}."
    if card.look == "held" and visitor.is_held:
        return "Held: log in again." if not visitor.is_connected else "You have switched publishing off."
    found = await waiting.why(card.row)
    if found is None:
        return ""
    again = f" Next try about {words_of(found.next_try, visitor.tz)[-5:]}." if found.next_try else ""
    return f"{found.words}{again}"


def next_words(automation: AutomationRow, visitor: Visitor) -> str:
    """When an automation runs next."""
    if not automation.is_on:
        return "off"
    return words_of(automation.next_run, visitor.tz) if automation.next_run else "no time comes"
