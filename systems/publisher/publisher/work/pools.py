"""The pool of an automation: its artist's drafts that are complete with its defaults. Looks only; a trial run asks here, too."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import msgspec

from holdfast import Tx
from publisher.desk.rows import COLUMNS, PostRow, post_row
from publisher.domain.catching_up import JITTER_MOST, Planned
from publisher.domain.choosing import Draft, Order, choose, jittered
from publisher.domain.defaults import apply
from publisher.domain.posts import Details, for_sale, missing
from publisher.domain.rules import Agreement, Rule
from publisher.recipes import as_domain, in_force, unpacked_defaults, unpacked_rules

LOOKS_MOST = 1_000  # drafts of one pool that are looked at for one nominal time
SKIPPED_MOST = 50  # of them in the log
_PORTION = 100


@dataclass(frozen=True)
class Recipe:
    """An automation as it is run."""

    id: str
    artist_id: str
    name: str
    zone: str
    order: Order
    agreement: Agreement
    jitter: tuple[int, int]
    only_stash: bool
    sells: bool
    rules: tuple[Rule, ...]
    defaults: str  # JSON
    looked_until: float
    note: str

    def details_of(self, post: PostRow) -> Details:
        """As it would be scheduled."""
        made = apply(post.told, as_domain(unpacked_defaults(self.defaults)))
        return for_sale(made) if self.sells else made

    def chance(self, nominal: datetime) -> random.Random:
        """The same for whoever asks about this nominal time: a trial shows what will be."""
        return random.Random(f"{self.id}:{nominal.timestamp():.0f}")

    def due(self, plan: Planned) -> list[tuple[datetime, datetime]]:
        """For each of its posts the wished moment, and that with jitter."""
        low, high = (min(each, JITTER_MOST) if plan.is_missed else each for each in self.jitter)
        chance = self.chance(plan.nominal)
        return [(each, jittered(each, low, high, chance)) for each in plan.wished]


@dataclass(frozen=True)
class Ready:
    """A draft that can be scheduled with these details."""

    post: PostRow
    details: Details


@dataclass(frozen=True)
class Skipped:
    post_id: str
    title: str
    why: str


_RECIPE = (
    "SELECT a.id, a.artist_id, a.name, r.zone, a.selection, a.agreement, a.jitter_low, a.jitter_high, a.only_stash, a.preset_id, "
    "a.rules, a.defaults, a.looked_until, a.note FROM automations a JOIN artists r ON r.id = a.artist_id"
)
# At rest are those whose artist has switched publishing off, must log in first, or leaves.
ACTIVE = (
    f"{_RECIPE} JOIN logins l ON l.artist_id = r.id "
    "WHERE a.is_on AND r.is_on AND r.left_at IS NULL AND l.state = 'active'"
)


def recipe(row: Sequence[object]) -> Recipe:
    """Of a row of ACTIVE or of `any_recipe`."""
    (
        id_, artist_id, name, zone, order, agreement, low, high, only_stash, preset_id, rules, defaults, looked_until, note,
    ) = row  # fmt: skip
    return Recipe(
        str(id_), str(artist_id), str(name), str(zone), Order(str(order)), Agreement(str(agreement)), (int(str(low)), int(str(high))),
        bool(only_stash), preset_id is not None, tuple(in_force(unpacked_rules(str(rules)))), str(defaults), float(str(looked_until)),
        str(note),
    )  # fmt: skip


async def recipe_of(tx: Tx, artist_id: str, automation_id: str) -> Recipe | None:
    """On or off."""
    rows = await tx.fetch(f"{_RECIPE} WHERE a.id = $1 AND a.artist_id = $2", automation_id, artist_id)
    return recipe(rows[0]) if rows else None


async def pool(tx: Tx, artist_id: str) -> list[Draft]:
    """Every draft without a date."""
    rows = await tx.fetch(
        "SELECT id, made_at FROM posts WHERE artist_id = $1 AND state = 'draft' AND wished_at IS NULL",
        artist_id,
    )
    return [Draft(post_id, datetime.fromtimestamp(made_at, UTC)) for post_id, made_at in rows]


class Picking:
    """Goes through a pool in the automation's order, and says of each draft that it passes over why."""

    def __init__(self, tx: Tx, of: Recipe, nominal: datetime, drafts: Sequence[Draft]) -> None:
        self._tx, self._of = tx, of
        self._line = iter(choose(drafts, min(len(drafts), LOOKS_MOST), of.order, of.chance(nominal)))
        self._ready: Iterator[PostRow] = iter(())
        self._files: dict[str, int] = {}
        self.skipped: list[Skipped] = []

    async def next(self) -> Ready | None:
        """The next draft that is complete. None: there is none."""
        while True:
            post = next(self._ready, None)
            if post is None:
                if not await self._read():
                    return None
                continue
            details = self._of.details_of(post)
            if faults := missing(details, files=self._files.get(post.id, 0)):
                self.skip(post, faults[0].message)
                continue
            return Ready(post, details)

    def skip(self, post: PostRow, why: str) -> None:
        self.skipped.append(Skipped(post.id, post.title, why))

    async def _read(self) -> bool:
        ids = [draft.id for draft in islice(self._line, _PORTION)]
        if not ids:
            return False
        places = ", ".join(f"${number + 1}" for number in range(len(ids)))
        rows = await self._tx.fetch(
            f"SELECT {COLUMNS} FROM posts WHERE id IN ({places})",  # noqa: S608  our own columns
            *ids,
        )
        files = await self._tx.fetch(
            f"SELECT post_id, count(*) FROM files WHERE post_id IN ({places}) "  # noqa: S608
            "AND deleted_at IS NULL AND key IS NOT NULL GROUP BY post_id",
            *ids,
        )
        found = {post.id: post for post in map(post_row, rows)}
        self._files = {post_id: int(number) for post_id, number in files}
        self._ready = iter([found[each] for each in ids if each in found])
        return True


def logged(skipped: Collection[Skipped]) -> str:
    """JSON for the log: the first ones, and how many more there were."""
    told = [(each.post_id, each.why) for each in skipped][:SKIPPED_MOST]
    if (more := len(skipped) - len(told)) > 0:
        told.append(("", f"{more:,} more drafts are not complete."))
    return msgspec.json.encode(told).decode()
