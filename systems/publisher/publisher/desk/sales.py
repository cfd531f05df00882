"""The sale queue: a work list for a program of the artist outside, since DeviantArt has no API for prices. A lease is fenced by its token."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass, fields

from holdfast import Tx
from publisher.core import hf
from publisher.desk.bulk import Result, many
from publisher.desk.inside import inside
from publisher.desk.refusals import Fault, Invalid, NotHere, TooLate
from publisher.domain.prices import Preset
from publisher.ids import new_id

LEASE = 15 * 60.0  # seconds that a program has for one entry
TRIES = 3
MOST_BY_HAND = 50
STATES = ("pending", "processing", "completed", "failed", "skipped")
_LINES_MOST = 10_000  # of a CSV


@dataclass(frozen=True)
class SaleRow:
    """One entry, with what the program outside needs of its post. `price` is in cents."""

    id: str
    post_id: str
    title: str
    deviationid: str | None
    url: str | None
    price: int
    preset_id: str | None
    state: str
    attempts: int
    client: str
    token: int
    leased_until: float | None
    error: str
    made_at: float
    ended_at: float | None


_COLUMNS = ", ".join(
    f"{'p' if each.name in ('title', 'deviationid', 'url') else 's'}.{each.name}" for each in fields(SaleRow)
)
_READ = f"SELECT {_COLUMNS} FROM sales s JOIN posts p ON p.id = s.post_id WHERE s.artist_id = $1"  # noqa: S608  our own columns
_PLACE = "SELECT made_at, id FROM sales WHERE id = $3"


# --- what comes into the queue ---


async def add_for(tx: Tx, post_id: str) -> bool:
    """In the transaction that publishes a post: its entry, when its automation sells. Once, whoever asks."""
    rows = await tx.fetch(
        "SELECT p.artist_id, r.id, r.name, r.low, r.high FROM posts p JOIN automations a ON a.id = p.automation_id "
        "JOIN presets r ON r.id = a.preset_id WHERE p.id = $1 AND p.url IS NOT NULL",
        post_id,
    )
    if not rows:
        return False
    [(artist_id, preset_id, name, low, high)] = rows
    return await _add(tx, artist_id, post_id, preset_id, Preset(name, low, high))


async def by_hand(artist_id: str, post_ids: Sequence[str], preset_id: str | None = None) -> list[Result]:
    """Published posts, each with a price of its own, by this preset or the usual one."""
    if len(post_ids) > MOST_BY_HAND:
        raise Invalid([Fault("post_ids", f"Add {MOST_BY_HAND} posts at a time; these are {len(post_ids)}.")])

    async with hf.transaction() as tx:
        chosen, preset = await _preset(tx, artist_id, preset_id)

    async def one(post_id: str) -> None:
        async with hf.transaction() as tx:
            rows = await tx.fetch(
                "SELECT state, url FROM posts WHERE id = $1 AND artist_id = $2", post_id, artist_id
            )
            if not rows:
                raise NotHere
            if rows[0][0] != "published" or rows[0][1] is None:
                raise TooLate("Only what is published on DeviantArt can be offered for sale.", rows[0][0])
            if not await _add(tx, artist_id, post_id, chosen, preset):
                raise TooLate("It is in the sale queue already.", rows[0][0])

    return await many(post_ids, one)


async def _add(tx: Tx, artist_id: str, post_id: str, preset_id: str, preset: Preset) -> bool:
    price = preset.price(random.Random(post_id))  # the same when this transaction is made again
    changed = await tx.execute(
        "INSERT INTO sales (id, artist_id, post_id, preset_id, price, state, attempts, client, token, error, made_at) "
        "VALUES ($1, $2, $3, $4, $5, 'pending', 0, '', 0, '', $6) ON CONFLICT (post_id) DO NOTHING",
        new_id(),
        artist_id,
        post_id,
        preset_id,
        price,
        await hf.now(),
    )
    return changed == 1


async def _preset(tx: Tx, artist_id: str, preset_id: str | None) -> tuple[str, Preset]:
    which, value = ("is_default = $2", True) if preset_id is None else ("id = $2", preset_id)
    rows = await tx.fetch(
        f"SELECT id, name, low, high FROM presets WHERE artist_id = $1 AND {which}",  # noqa: S608  our own words
        artist_id,
        value,
    )
    if not rows and preset_id is None:
        raise Invalid([Fault("preset_id", "Choose a price, or make one of your prices the usual one.")])
    if not rows:
        raise NotHere("price")
    [(found, name, low, high)] = rows
    return str(found), Preset(name, low, high)


# --- the program outside ---


async def next(artist_id: str, client: str) -> SaleRow | None:  # noqa: A001  the word of its clients
    """The oldest entry that waits, or whose lease has ended, for this client; nobody else gets it until then. None: nothing waits."""
    if not client.strip() or len(client) > 100:
        raise Invalid([Fault("client", "Say who you are, in 1 to 100 characters.")])
    now = await hf.now()
    async with hf.transaction() as tx:
        await tx.execute(
            "UPDATE sales SET state = 'failed', leased_until = NULL, ended_at = $1, error = 'It was begun three times, and never ended.' "
            "WHERE artist_id = $2 AND state = 'processing' AND leased_until <= $1 AND attempts >= $3",
            now,
            artist_id,
            TRIES,
        )
        while True:
            rows = await tx.fetch(
                "SELECT id, token FROM sales WHERE artist_id = $1 AND attempts < $3 "
                "AND (state = 'pending' OR (state = 'processing' AND leased_until <= $2)) ORDER BY made_at, id LIMIT 1",
                artist_id,
                now,
                TRIES,
            )
            if not rows:
                return None
            [(sale_id, token)] = rows
            # Compare-and-swap: another client may have been quicker, then the next one is looked for.
            if await tx.execute(
                "UPDATE sales SET state = 'processing', attempts = attempts + 1, client = $1, token = token + 1, leased_until = $2 "
                "WHERE id = $3 AND token = $4",
                client.strip(),
                now + LEASE,
                sale_id,
                token,
            ):
                return await _one(tx, artist_id, sale_id)


async def complete(artist_id: str, sale_id: str, token: int, *, tx: Tx | None = None) -> SaleRow:
    """The price is set. Said twice by the same holder it is the same."""
    async with inside(tx) as own:
        found = await _one(own, artist_id, sale_id)
        if found.state == "completed" and found.token == token:
            return found
        await _end(own, found, token, "completed", "")
        return await _one(own, artist_id, sale_id)


async def fail(artist_id: str, sale_id: str, token: int, error: str, *, tx: Tx | None = None) -> SaleRow:
    """It waits for another try; after three it has failed."""
    async with inside(tx) as own:
        found = await _one(own, artist_id, sale_id)
        after = "failed" if found.attempts >= TRIES else "pending"
        await _end(own, found, token, after, error.strip()[:500] or "The program gave no reason.")
        return await _one(own, artist_id, sale_id)


async def _end(tx: Tx, found: SaleRow, token: int, after: str, error: str) -> None:
    ended_at = None if after == "pending" else await hf.now()
    changed = await tx.execute(
        "UPDATE sales SET state = $1, leased_until = NULL, error = $2, ended_at = $3 "
        "WHERE id = $4 AND state = 'processing' AND token = $5",
        after,
        error,
        ended_at,
        found.id,
        token,
    )
    if not changed:
        raise TooLate("This lease is over: the entry was given to another, or has ended.", found.state)


# --- the artist ---


async def listing(
    artist_id: str, *, state: str | None = None, before: str | None = None, limit: int = 50
) -> list[SaleRow]:
    """The newest first; `before` is the id of the last one that was seen."""
    if state is not None and state not in STATES:
        raise Invalid([Fault("state", f"A state is one of {', '.join(STATES)}.")])
    of_state = "" if state is None else f" AND s.state = '{state}'"
    earlier = "" if before is None else f" AND (s.made_at, s.id) < ({_PLACE})"
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            f"{_READ}{of_state}{earlier} ORDER BY s.made_at DESC, s.id DESC LIMIT $2",
            artist_id,
            limit,
            *([] if before is None else [before]),
        )
    return [SaleRow(*row) for row in rows]


async def counts(artist_id: str) -> dict[str, int]:
    """Of each state."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT state, count(*) FROM sales WHERE artist_id = $1 GROUP BY state", artist_id
        )
    found = {str(state): int(number) for state, number in rows}
    return {state: found.get(state, 0) for state in STATES}


async def skip(artist_id: str, sale_id: str) -> None:
    """It is not to be sold after all. Whoever works on it hears that the lease is over."""
    await _by_artist(
        artist_id, sale_id, "skipped", ("pending", "processing", "failed"), "It is {state}, and stays so."
    )


async def again(artist_id: str, sale_id: str) -> None:
    """Back into the queue, with three new tries."""
    await _by_artist(artist_id, sale_id, "pending", ("failed", "skipped"), "It is {state} at the moment.")


async def _by_artist(artist_id: str, sale_id: str, after: str, before: tuple[str, ...], words: str) -> None:
    now = await hf.now()
    async with hf.transaction() as tx:
        found = await _one(tx, artist_id, sale_id)
        changed = await tx.execute(
            "UPDATE sales SET state = $1, leased_until = NULL, token = token + 1, error = '', ended_at = $2, "
            "attempts = CASE WHEN $1 = 'pending' THEN 0 ELSE attempts END WHERE id = $3 AND token = $4 AND state IN ($5, $6, $7)",
            after,
            None if after == "pending" else now,
            sale_id,
            found.token,
            before[0],
            before[1],
            before[-1],
        )
        if not changed:
            raise TooLate(words.format(state=found.state), found.state)


async def as_csv(artist_id: str) -> str:
    """All entries, the newest first; what a spreadsheet would take for a formula is a text."""
    rows = await listing(artist_id, limit=_LINES_MOST)
    sheet = io.StringIO()
    writer = csv.writer(sheet)
    writer.writerow(("title", "url", "price in USD", "state", "tries", "error"))
    for row in rows:
        told = (row.title, row.url or "", f"{row.price / 100:.2f}", row.state, row.attempts, row.error)
        writer.writerow(tuple(_plain(each) for each in told))
    return sheet.getvalue()


def _plain(value: str | int) -> str:
    text = str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


async def _one(tx: Tx, artist_id: str, sale_id: str) -> SaleRow:
    rows = await tx.fetch(f"{_READ} AND s.id = $2", artist_id, sale_id)
    if not rows:
        raise NotHere("entry of the sale queue")
    return SaleRow(*rows[0])
