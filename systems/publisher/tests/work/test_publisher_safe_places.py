"""What is lost and what is not: a database that goes away in the worst moment, tokens in the wrong row, copies over a restart."""

from __future__ import annotations

import asyncpg
import publisher_kit as kit
import pytest
from publisher.core import PUBLISHING
from publisher.desk import galleries, scheduling
from publisher.outside.deviantart import DeviantArt
from publisher.work import access

from holdfast.errors import HoldfastError
from holdfast.vault import SealBroken
from tools.waiting import until


async def test_the_database_goes_away_right_after_the_call(
    postgres_url, open_at, simulator, ada, monkeypatch
):
    """P16: DeviantArt has said yes, and every connection is cut before that is written: never failed, and never sent again."""
    usual, cut = DeviantArt.publish, []

    async def publish_and_cut(self, token, fields):
        found = await usual(self, token, fields)
        if not cut:
            connection = await asyncpg.connect(postgres_url)
            cut.append(await connection.fetchval(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ))  # fmt: skip
            await connection.close()
        return found

    monkeypatch.setattr(DeviantArt, "publish", publish_and_cut)
    async with open_at(postgres_url) as hf:
        await ada.log_in()
        post_id = await ada.draft()
        await scheduling.publish_now(ada.id, post_id)

        async def is_published():
            try:
                return await kit.state_of(post_id) == "published"
            except HoldfastError:  # our own connection was cut, too
                return False

        async with hf.worker({PUBLISHING: 2}, lease=2):
            await until(is_published, 90)
        async with hf.transaction() as tx:
            kinds = [
                row[0] for row in await tx.fetch("SELECT kind FROM happenings WHERE post_id = $1", post_id)
            ]
            assert await tx.fetch("SELECT post_count FROM artists") == [(1,)]
    assert cut[0] >= 1
    assert "failed" not in kinds
    assert len(simulator.ledger.find("published")) == 1
    assert simulator.ledger.calls["stash/publish"] == 1


async def test_tokens_of_another_artist_do_not_open(any_hf, simulator, ada):
    """P64: what is sealed is bound to its row; moved to another one it is no token."""
    other = await kit.Artist(simulator, "bo-linnet").log_in()
    await ada.log_in()
    async with any_hf.transaction() as tx:
        [(theirs,)] = await tx.fetch("SELECT access FROM logins WHERE artist_id = $1", other.id)
        await tx.execute("UPDATE logins SET access = $1 WHERE artist_id = $2", theirs, ada.id)
    with pytest.raises(SealBroken):
        await access.access_of(ada.id)
    assert (await access.access_of(other.id)).token.reveal()


async def test_what_browsing_has_brought_outlives_a_restart(any_url, open_at, simulator, ada):
    """P76: it is kept in the database, so after a restart nobody is asked."""
    async with open_at(any_url):
        await ada.log_in()
        first = await galleries.folders(ada.id)
        made = dict(simulator.ledger.calls)
    async with open_at(any_url):
        again = await galleries.folders(ada.id)
    assert dict(simulator.ledger.calls) == made
    assert first.value == again.value
