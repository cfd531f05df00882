"""A quota of files: exact when many commit at once, each tenant's own, and no deletion that is taken back gets around it."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Holdfast, within
from holdfast.blobs import BlobQuotaExceeded, BlobSettings
from holdfast.errors import UsageError
from holdfast.store.blob_records import Usage
from holdfast.testing import fresh
from holdfast.testing.conformance.blob_kit import names
from holdfast.web.problems import problem_of

TEN = b"0123456789"


@pytest.fixture
async def hf(url, tmp_path):
    settings = BlobSettings(url=f"file:{tmp_path / 'blobs'}", quota=35)
    async with fresh(Holdfast("sqlite:///never-made.db", blobs=settings), url) as opened:
        with within(tenant="ada"):
            yield opened


async def fill(hf):
    for key in "abc":
        await hf.blobs.put(key, TEN)


async def test_what_is_above_the_quota_is_refused_and_nothing_of_it_is_kept(hf):
    await fill(hf)
    with pytest.raises(BlobQuotaExceeded, match=r"30 of 35 bytes, and 10 more"):
        await hf.blobs.put("d", TEN)
    await hf.blobs.put("d", b"01234")
    with pytest.raises(BlobQuotaExceeded):
        await hf.blobs.stage(b"x")
    assert await hf.blobs.usage() == Usage(4, 35)
    with within(tenant="bob"):
        await hf.blobs.put("d", TEN)
    await hf.blobs.delete("a")
    await hf.blobs.put("e", TEN)


async def test_it_is_exact_when_many_commit_at_once(hf):
    """Each has looked before any of them has committed."""
    staged = [await hf.blobs.stage(TEN) for _ in range(12)]
    done = await asyncio.gather(*(hf.blobs.commit(each) for each in staged), return_exceptions=True)
    refused = [each for each in done if isinstance(each, BaseException)]
    assert {type(each) for each in refused} == {BlobQuotaExceeded}
    assert len(done) - len(refused) == 3
    assert await hf.blobs.usage() == Usage(3, 30)


async def test_who_is_refused_in_his_transaction_has_the_rest_of_it(hf):
    await fill(hf)
    async with hf.transaction() as tx:
        await hf.blobs.delete("a", "b", tx=tx)
        await hf.blobs.put("d", TEN, tx=tx)
        await hf.blobs.put("e", TEN, tx=tx)
        with pytest.raises(BlobQuotaExceeded):
            await hf.blobs.put("f", TEN, tx=tx)
    assert [each.key for each in await hf.blobs.list(state="kept")] == ["c", "d", "e"]


async def test_a_deletion_is_taken_back_within_the_quota(hf):
    await fill(hf)
    await hf.blobs.delete("a")
    await hf.blobs.put("d", TEN)
    with pytest.raises(BlobQuotaExceeded):
        await hf.blobs.restore("a")
    await hf.blobs.quarantine("d", "why not")
    with pytest.raises(BlobQuotaExceeded):
        await hf.blobs.restore("a")
    assert not await hf.blobs.restore("b"), "it is there"
    await hf.blobs.delete("d")
    assert await hf.blobs.restore("a")
    assert await hf.blobs.usage() == Usage(3, 30)


async def test_a_link_is_given_for_what_fits(hf):
    await fill(hf)
    with pytest.raises(BlobQuotaExceeded) as raised:
        await hf.blobs.link_put(content_type="image/png", length=6)
    assert problem_of(raised.value).status == 413
    await hf.blobs.link_put(content_type="image/png", length=5)
    with pytest.raises(BlobQuotaExceeded):
        await hf.blobs.stage(iter([TEN]), length=6)
    assert len(await names(hf.blobs.place())) == 3, "nothing was written"


def test_a_quota_is_a_number_of_bytes():
    for wrong in (0, -1, "1 GB", 1.5, True):
        with pytest.raises(UsageError, match="quota"):
            BlobSettings(url="file:blobs", quota=wrong)
