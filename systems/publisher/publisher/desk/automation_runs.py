"""What an automation would choose, and what it did: a trial without any effect, and the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

from holdfast import Tx
from publisher.core import hf
from publisher.desk.refusals import NotHere
from publisher.domain.catching_up import Planned
from publisher.domain.rules import slots
from publisher.work.pools import Picking, Recipe, pool, recipe_of

_HORIZONS = (1, 8, 62)  # days in which the next run is looked for
_EVER = 1e12  # later than any nominal time
TIMES, POSTS = 10, 20  # that a trial shows at most


@dataclass(frozen=True)
class WouldPost:
    post_id: str
    title: str
    at: float  # with its delay


@dataclass(frozen=True)
class TrialTime:
    """A nominal time, for how many posts it is, and those that it would get."""

    nominal_at: float
    wanted: int
    posts: tuple[WouldPost, ...]


@dataclass(frozen=True)
class Passed:
    """A draft that is passed over, and why."""

    post_id: str
    title: str
    why: str


@dataclass(frozen=True)
class Trial:
    """What would happen if nothing changed meanwhile."""

    times: tuple[TrialTime, ...]
    skipped: tuple[Passed, ...]
    words: str


@dataclass(frozen=True)
class LogRow:
    nominal_at: float
    at: float
    seconds: float
    wanted: int
    chosen: tuple[tuple[str, str], ...]  # id of the post, and its title
    skipped: tuple[Passed, ...]
    words: str


def upcoming(of: Recipe, after: float, number: int) -> list[tuple[float, int]]:
    """The next nominal times, each with its posts."""
    begin, found = datetime.fromtimestamp(after, UTC), []
    for days in _HORIZONS:
        found = slots(of.rules, ZoneInfo(of.zone), of.agreement, begin, begin + timedelta(days=days))
        if len(found) >= number:
            break
    return [(slot.at.timestamp(), slot.posts) for slot in found[:number]]


async def trial(artist_id: str, automation_id: str) -> Trial:
    """The drafts that it would choose for its next times, as if it were on. Nothing is written."""
    now = await hf.now()
    async with hf.transaction() as tx:
        of = await recipe_of(tx, artist_id, automation_id)
        if of is None:
            raise NotHere("automation")
        return await _tried(tx, of, now)


async def _tried(tx: Tx, of: Recipe, now: float) -> Trial:
    drafts = await pool(tx, of.artist_id)
    times: list[TrialTime] = []
    skipped: dict[str, Passed] = {}
    for nominal, wanted in upcoming(of, max(now, of.looked_until), TIMES):
        at = datetime.fromtimestamp(nominal, UTC)
        picking = Picking(tx, of, at, drafts)
        posts = []
        for _, due in of.due(Planned(at, (at,) * wanted)):
            if (ready := await picking.next()) is None:
                break
            posts.append(WouldPost(ready.post.id, ready.post.title, due.timestamp()))
        times.append(TrialTime(nominal, wanted, tuple(posts)))
        skipped |= {each.post_id: Passed(each.post_id, each.title, each.why) for each in picking.skipped}
        taken = {each.post_id for each in posts}
        drafts = [each for each in drafts if each.id not in taken]
        if sum(len(each.posts) for each in times) >= POSTS or len(posts) < wanted:
            break
    return Trial(tuple(times), tuple(skipped.values()), _words(of, times))


def _words(of: Recipe, times: list[TrialTime]) -> str:
    if not of.rules:
        return "No rule is on: it would never run."
    if not times:
        return "Its rules do not come true together in the next two months."
    last = times[-1]
    if len(last.posts) == last.wanted:
        return ""
    return f"There are drafts for {sum(len(each.posts) for each in times)} posts; then they run out."


async def log(
    artist_id: str, automation_id: str, *, before: float | None = None, limit: int = 20
) -> list[LogRow]:
    """The newest nominal time first; `before` is that of the last one that was seen."""
    async with hf.transaction() as tx:
        if await recipe_of(tx, artist_id, automation_id) is None:
            raise NotHere("automation")
        rows = await tx.fetch(
            "SELECT nominal_at, at, seconds, wanted, chosen, skipped, words FROM executions "
            "WHERE automation_id = $1 AND nominal_at < $2 ORDER BY nominal_at DESC LIMIT $3",
            automation_id,
            _EVER if before is None else before,
            limit,
        )
        read = [
            (*row[:4], msgspec.json.decode(row[4], type=list[str]), msgspec.json.decode(row[5], type=list[tuple[str, str]]), row[6])
            for row in rows
        ]  # fmt: skip
        titles = await _titles(tx, {each for row in read for each in (*row[4], *(id_ for id_, _ in row[5]))})
    return [
        LogRow(
            nominal_at, at, seconds, wanted, tuple((each, titles.get(each, "")) for each in chosen),
            tuple(Passed(each, titles.get(each, ""), why) for each, why in skipped), words,
        )
        for nominal_at, at, seconds, wanted, chosen, skipped, words in read
    ]  # fmt: skip


async def _titles(tx: Tx, ids: Iterable[str]) -> dict[str, str]:
    """Of those that are still there."""
    wanted = list(ids)
    if not wanted:
        return {}
    places = ", ".join(f"${number + 1}" for number in range(len(wanted)))
    return dict(await tx.fetch(f"SELECT id, title FROM posts WHERE id IN ({places})", *wanted))  # noqa: S608  placeholders
