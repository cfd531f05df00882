"""A key is claimed without waiting for the disk, and nothing else is."""

from __future__ import annotations

from functools import partial

import pytest

from holdfast.store.idempotency import KeyScope
from holdfast.store.postgres.store import PostgresStore
from holdfast.store.sqlite.store import SqliteStore

SCOPE = KeyScope("", "", "POST /orders")
NORMAL, FULL = 1, 2


def _synchronous(db, *, seen):
    seen.append(db.value("PRAGMA synchronous"))


@pytest.mark.parametrize(("configured", "usual"), [("FULL", FULL), ("NORMAL", NORMAL)])
async def test_on_sqlite_only_a_hasty_commit_leaves_the_disk_alone(tmp_path, configured, usual):
    store = SqliteStore(tmp_path / "a.db", synchronous=configured)
    await store.open()
    seen = []
    await store.write(partial(_synchronous, seen=seen))
    await store.write(partial(_synchronous, seen=seen), hasty=True)
    await store.write(partial(_synchronous, seen=seen))
    async with store.transaction() as tx:
        seen.append((await tx.fetch("SELECT synchronous FROM pragma_synchronous"))[0][0])
    await store.close()
    assert seen == [usual, NORMAL, usual, usual]


async def test_on_sqlite_a_claim_is_hasty(tmp_path, monkeypatch):
    store, seen = SqliteStore(tmp_path / "a.db"), []
    await store.open()
    real = store._writer._commit

    def commit(kind):
        seen.append(store._writer._db.value("PRAGMA synchronous"))
        real(kind)

    monkeypatch.setattr(store._writer, "_commit", commit)
    claim = await store.keys.begin(SCOPE, "k", fingerprint="f", lease=30)
    await store.keys.finish(claim, "{}", keep=60)
    await store.close()
    assert seen == [NORMAL, FULL]


async def test_on_postgres_a_claim_leaves_the_session_as_it_was(postgres_url):
    store = PostgresStore(f"{postgres_url}?pool_size=1")
    await store.open()
    claim = await store.keys.begin(SCOPE, "hasty", fingerprint="f", lease=30)
    async with store.transaction() as tx:
        await store.keys.begin(SCOPE, "inside", fingerprint="f", lease=30, tx=tx)
        assert await tx.fetch("SHOW synchronous_commit") == [("on",)]
    assert await store.keys.finish(claim, "{}", keep=60)
    await store.close()
