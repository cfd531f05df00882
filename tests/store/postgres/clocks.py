"""Move the database's clock: it is a function of ours, so a test can put another in its place."""

from __future__ import annotations

from holdfast.store.postgres.store import PostgresStore

_NOW = """CREATE OR REPLACE FUNCTION holdfast.now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
    AS $now$ SELECT {} $now$"""


async def freeze(store: PostgresStore, at: float) -> None:
    """The clock stands still at this moment."""
    async with store.transaction() as tx:
        await tx.execute(_NOW.format(f"to_timestamp({at!r}::float8)"))


async def advance(store: PostgresStore, seconds: float) -> None:
    """The clock goes on, so much later than before."""
    async with store.transaction() as tx:
        [(ahead,)] = await tx.fetch("SELECT date_part('epoch', holdfast.now() - clock_timestamp())")
        await tx.execute(
            _NOW.format(f"clock_timestamp() + make_interval(secs => {ahead + seconds!r}::float8)")
        )
