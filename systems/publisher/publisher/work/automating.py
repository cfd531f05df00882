"""Automations: every five minutes, what is due in the next five is planned. An execution is one commit, fenced, and once for each nominal time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec

from holdfast import Backoff, Job, Tx
from publisher.core import hf
from publisher.desk.refusals import Refusal, TooLate
from publisher.desk.rows import post_of
from publisher.desk.scheduling import begin
from publisher.details import packed
from publisher.domain.catching_up import Plan, Planned, plan
from publisher.domain.choosing import Draft
from publisher.domain.rules import Slot, slots
from publisher.work import mails
from publisher.work.pools import ACTIVE, Picking, Ready, Recipe, Skipped, logged, pool, recipe
from publisher.work.writing import moment, one_line

AHEAD = 300.0  # seconds: a look plans until the next one, so that posts go out at their time and not at that of a look
AT_ONCE = 200  # posts of one execution; the next look goes on
_STALE = 3_600.0  # seconds after which "looked until" is moved on although nothing was due
_PAGE = 500


@hf.cron("*/5 * * * *", schedule="automations")
@hf.task(name="publisher.automations", timeout=120)
async def look() -> int:
    """Give each automation that has something due its execution; how many."""
    now = await hf.now()
    await _rest(now)
    found, last = 0, ""
    while recipes := await _active(last):
        last = recipes[-1].id
        due = [each for each in recipes if due_of(each, now)]
        await _move_on((each for each in recipes if each not in due), now)
        if due:
            await execute.enqueue_many([{"automation_id": each.id} for each in due])
        found += len(due)
    return found


@hf.task(
    name="publisher.automation",
    unique="automation:{automation_id}",
    lock="automation:{automation_id}",
    retry=Backoff(attempts=8, first=5, ceiling=300),
    timeout=60,
)
async def execute(job: Job, automation_id: str) -> None:
    """Choose drafts for what is due, and schedule them: all of it, or nothing, with the job's success."""
    begun = await hf.now()
    async with job.commit() as tx:
        of = await _locked(tx, automation_id)
        if of is not None and (due := due_of(of, begun)):
            await _Execution(tx, of, begun).run(due)


def due_of(of: Recipe, now: float) -> list[Slot]:
    """Its nominal times since it was looked at; as many as one execution may do."""
    after, until = datetime.fromtimestamp(of.looked_until, UTC), datetime.fromtimestamp(now + AHEAD, UTC)
    return slots(of.rules, ZoneInfo(of.zone), of.agreement, after, until) if after < until else []


@dataclass(frozen=True)
class _Filled:
    """What became of one nominal time."""

    ids: tuple[str, ...]
    skipped: Sequence[Skipped]


@dataclass
class _Execution:
    """In one transaction: each nominal time is marked as done before its drafts are chosen."""

    tx: Tx
    of: Recipe
    begun: float

    async def run(self, due: Sequence[Slot]) -> None:
        planned = plan(due, datetime.fromtimestamp(self.begun, UTC))
        await self._let_go(planned)
        drafts, number, until = await pool(self.tx, self.of.artist_id), 0, due[-1].at
        note, done = self.of.note, datetime.fromtimestamp(self.of.looked_until, UTC)
        for each in planned.planned:
            if number and number + len(each.wished) > AT_ONCE:
                until = done
                break
            if await self._is_first(each):
                filled = await self._fill(each, drafts)
                drafts = [draft for draft in drafts if draft.id not in filled.ids]
                note = await self._tell(each, filled, note)
            number, done = number + len(each.wished), each.nominal
        await self.tx.execute(
            "UPDATE automations SET looked_until = $1, note = $2 WHERE id = $3",
            until.timestamp(),
            note,
            self.of.id,
        )

    async def _let_go(self, planned: Plan) -> None:
        """One line for all of it, under the last of these times."""
        kept = {each.nominal for each in planned.planned}
        gone = [slot for slot in planned.let_go if slot.at not in kept]
        if gone:
            first, last = (moment(each.at.timestamp(), self.of.zone) for each in (gone[0], gone[-1]))
            posts = sum(slot.posts for slot in gone)
            words = f"Missed and let go: {len(gone):,} times from {first} to {last}."
            await self._insert(gone[-1].at, posts, words)

    async def _is_first(self, each: Planned) -> bool:
        """The key makes it once, whatever else goes wrong."""
        return await self._insert(each.nominal, len(each.wished), "")

    async def _insert(self, nominal: datetime, wanted: int, words: str) -> bool:
        changed = await self.tx.execute(
            "INSERT INTO executions (automation_id, nominal_at, at, seconds, wanted, chosen, skipped, words) "
            "VALUES ($1, $2, $3, 0, $4, '[]', '[]', $5) ON CONFLICT (automation_id, nominal_at) DO NOTHING",
            self.of.id,
            nominal.timestamp(),
            self.begun,
            wanted,
            words,
        )
        return changed == 1

    async def _fill(self, each: Planned, drafts: Sequence[Draft]) -> _Filled:
        picking = Picking(self.tx, self.of, each.nominal, drafts)
        chosen: list[str] = []
        for wished, due in self.of.due(each):
            while (ready := await picking.next()) is not None:
                if await self._claim(ready, wished, due, picking):
                    chosen.append(ready.post.id)
                    break
            else:
                break
        return _Filled(tuple(chosen), picking.skipped)

    async def _claim(self, ready: Ready, wished: datetime, due: datetime, picking: Picking) -> bool:
        """By its version: what another has taken or changed since it was read is passed over."""
        post = ready.post
        try:
            async with self.tx.savepoint():
                changed = await self.tx.execute(
                    "UPDATE posts SET details = $1, only_stash = $2, automation_id = $3, version = version + 1 "
                    "WHERE id = $4 AND version = $5 AND state = 'draft' AND wished_at IS NULL",
                    packed(ready.details),
                    post.only_stash or self.of.only_stash,
                    self.of.id,
                    post.id,
                    post.version,
                )
                if not changed:
                    raise TooLate("It was changed or taken in this moment.", post.state)
                fresh = await post_of(self.tx, self.of.artist_id, post.id)
                await begin(
                    self.tx, fresh, wished.timestamp(), due.timestamp(), who=f"automation “{self.of.name}”"
                )
        except Refusal as refusal:
            picking.skip(post, refusal.words)
            return False
        return True

    async def _tell(self, each: Planned, filled: _Filled, note: str) -> str:
        """The line in the log, and the artist's note: told once when drafts run out, taken back when there are some."""
        wanted, number = len(each.wished), len(filled.ids)
        words = [f"Chosen {number} of {wanted}."]
        if each.is_missed:
            words.append("It was missed, and is made up for.")
        if number < wanted:
            words.append(why_short(filled.skipped))
        await self.tx.execute(
            "UPDATE executions SET chosen = $1, skipped = $2, words = $3, seconds = $4 WHERE automation_id = $5 AND nominal_at = $6",
            msgspec.json.encode(filled.ids).decode(),
            logged(filled.skipped),
            " ".join(words),
            await hf.now() - self.begun,
            self.of.id,
            each.nominal.timestamp(),
        )
        if number == wanted:
            return ""
        if not note:
            told = why_short(filled.skipped)
            await mails.pool_empty(self.of.artist_id, self.of.id, each.nominal.timestamp(), told, self.tx)
        return why_short(filled.skipped)


def why_short(skipped: Sequence[Skipped]) -> str:
    """Why there were not enough drafts."""
    if not skipped:
        return "There is no draft without a date left."
    first = f"“{one_line(skipped[0].title) or 'Without a title'}”: {skipped[0].why}"
    if len(skipped) == 1:
        return f"One draft is not complete. {first}"
    return f"{len(skipped):,} drafts are not complete, such as {first}"


# --- rows ---


async def _active(after: str) -> list[Recipe]:
    async with hf.transaction() as tx:
        rows = await tx.fetch(f"{ACTIVE} AND a.id > $1 ORDER BY a.id LIMIT $2", after, _PAGE)
    return [recipe(row) for row in rows]


async def _locked(tx: Tx, automation_id: str) -> Recipe | None:
    """None: it is off, or at rest. Executions of one artist follow each other, so that they never wait for each other's drafts."""
    await tx.execute(
        "UPDATE artists SET jitter = jitter WHERE id = (SELECT artist_id FROM automations WHERE id = $1)",
        automation_id,
    )
    rows = await tx.fetch(f"{ACTIVE} AND a.id = $1", automation_id)
    return recipe(rows[0]) if rows else None


async def _rest(now: float) -> None:
    """What falls into a time in which the artist has switched publishing off is not made up for."""
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE automations SET looked_until = $1 WHERE is_on AND looked_until < $1 "
            "AND artist_id IN (SELECT id FROM artists WHERE NOT is_on)",
            now,
        )


async def _move_on(idle: Iterable[Recipe], now: float) -> None:
    """So that a rule which seldom comes true is not asked about an ever longer time."""
    old = [each for each in idle if each.looked_until < now - _STALE]
    if not old:
        return
    async with hf.transaction() as tx:
        for each in old:
            await tx.execute(
                "UPDATE automations SET looked_until = $1 WHERE id = $2 AND looked_until = $3",
                now,
                each.id,
                each.looked_until,
            )
