"""Places for blobs: an object is there whole or not at all, under its name alone, and as it was announced."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.blobs.errors import BlobKeyError, BlobMismatch, BlobMissing, BlobTooLarge
from holdfast.blobs.port import BlobStore
from holdfast.kernel.errors import UsageError
from holdfast.testing.conformance.blob_kit import BlobsSuite, Broken, names, streamed, whole
from holdfast.testing.conformance.kit import raises

LARGE = 20 * 1024 * 1024  # more than an adapter sends at once
# Each would be another name, or none, on some file system, proxy or S3.
TRICKS = (
    "", "/", "/etc/passwd", "a/", "a//b", "..", "../b", "a/../b", "a/./b", ".", ".hidden", "a/.parts/b", "a/b.", "a\\b", "C:\\b", "a%2fb",
    "%2e%2e/b", "a%00b", "a\0b", "a\nb", "a b", " a", "a?b", "a#b", "a:b", "a*b", "~a", "a~", "a/\u2024\u2024/b", "\uff0e\uff0e/b", "a\u2215b",
    "a\u202eb", "caf\u00e9", "e\u0301", "\u212a", "a\ufeffb", "\ud800", "x" * 501, "y" * 201, "a;b", "a&b", "a=b\r\nX: 1", "<script>", "a'b", 'a"b',
)  # fmt: skip


class BlobsConformance(BlobsSuite):
    """`class TestMine(BlobsConformance)` with a fixture `harness`, a BlobsHarness."""

    async def test_what_was_put_is_there(self, place: BlobStore) -> None:
        stored = await place.put("a/b.png", b"hello", content_type="image/png")
        assert (stored.size, stored.sha256) == (5, hashlib.sha256(b"hello").hexdigest())
        assert await whole(place, "a/b.png") == b"hello"
        stat = await place.stat("a/b.png")
        assert stat is not None
        assert (stat.name, stat.size, stat.content_type) == ("a/b.png", 5, "image/png")

    async def test_an_empty_object_is_one(self, place: BlobStore) -> None:
        assert (await place.put("empty", b"")).size == 0
        assert await whole(place, "empty") == b""
        assert [each.size for each in await place.list()] == [0]

    async def test_content_comes_in_any_form(self, place: BlobStore) -> None:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "x"
            file.write_bytes(b"hello")
            for content in (
                b"hello",
                bytearray(b"hello"),
                memoryview(b"hello"),
                file,
                [b"he", b"", b"llo"],
                streamed(5, b"hello"),
            ):
                await place.put("x", content)
                assert await whole(place, "x") == b"hello"
        with raises(UsageError, "bytes, a Path"):
            await place.put("y", "text")  # type: ignore[arg-type]
        assert await place.stat("y") is None

    async def test_a_large_one_is_streamed_whole(self, place: BlobStore) -> None:
        expected = hashlib.sha256(b"".join([piece async for piece in streamed(LARGE)])).hexdigest()
        stored = await place.put(
            "large", streamed(LARGE), content_type="video/mp4", length=LARGE, sha256=expected
        )
        assert (stored.size, stored.sha256) == (LARGE, expected)
        found = hashlib.sha256()
        async for piece in await place.get("large"):
            found.update(piece)
        assert found.hexdigest() == expected
        stat = await place.stat("large")
        assert stat is not None
        assert stat.content_type == "video/mp4"

    async def test_it_is_replaced_whole(self, place: BlobStore) -> None:
        await place.put("x", b"first", content_type="text/plain")
        reading = await place.get("x")
        await place.put("x", b"second and longer", content_type="text/html")
        assert await whole(place, "x") == b"second and longer"
        stat = await place.stat("x")
        assert stat is not None
        assert stat.content_type == "text/html"
        await reading.aclose()

    async def test_nothing_is_there_of_what_is_not_as_announced(self, place: BlobStore) -> None:
        other = hashlib.sha256(b"other").hexdigest()
        for size in (5, LARGE):
            with raises(BlobMismatch, "announced"):
                await place.put("x", streamed(size), length=size + 1)
            with raises(BlobMismatch, "announced"):
                await place.put("x", streamed(size), length=size - 1)
            with raises(BlobMismatch, other):
                await place.put("x", streamed(size), sha256=other)
            with raises(BlobTooLarge, f"{size - 1:,}"):
                await place.put("x", streamed(size), most=size - 1)
        assert await names(place) == []
        await place.put("x", streamed(5), length=5, most=5)

    async def test_nothing_is_there_of_what_breaks_off(self, place: BlobStore) -> None:
        async def broken(size: int) -> AsyncIterator[bytes]:
            async for piece in streamed(size):
                yield piece
            raise Broken

        for size in (5, LARGE):
            with raises(Broken):
                await place.put("x", broken(size))
        assert await names(place) == []

    async def test_what_was_there_stays_when_its_successor_breaks_off(self, place: BlobStore) -> None:
        await place.put("x", b"first")
        with raises(BlobMismatch):
            await place.put("x", streamed(LARGE), length=LARGE + 1)
        assert await whole(place, "x") == b"first"

    async def test_a_writer_that_is_cancelled_leaves_nothing(self, place: BlobStore) -> None:
        began = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            yield b"x" * 1000
            began.set()
            await asyncio.Event().wait()

        writer = asyncio.ensure_future(place.put("x", endless()))
        await began.wait()
        writer.cancel()
        await asyncio.wait([writer])
        assert writer.cancelled()
        assert await names(place) == []

    async def test_a_range_is_read_alone(self, place: BlobStore) -> None:
        await place.put("x", b"0123456789")
        for start, end in (
            (0, 10),
            (3, 7),
            (9, 10),
            (5, None),
            (0, 100),
            (10, None),
            (50, 60),
            (4, 4),
            (4, 2),
        ):
            assert await whole(place, "x", start, end) == b"0123456789"[start:end]

    async def test_what_is_not_there(self, place: BlobStore) -> None:
        assert await place.stat("x/y") is None
        with raises(BlobMissing, "x/y"):
            await place.get("x/y")
        with raises(BlobMissing, "x/y"):
            await place.get("x/y", start=1)
        with raises(BlobMissing, "x/y"):
            await place.copy("x/y", "z")
        await place.delete(["x/y"])
        assert await place.list("x") == []

    async def test_a_copy_stands_by_itself(self, place: BlobStore) -> None:
        await place.put("a", b"hello", content_type="image/png")
        await place.copy("a", "b/c")
        await place.delete(["a"])
        assert await whole(place, "b/c") == b"hello"
        stat = await place.stat("b/c")
        assert stat is not None
        assert stat.content_type == "image/png"
        assert await names(place) == ["b/c"]

    async def test_many_are_deleted_at_once(self, place: BlobStore) -> None:
        for number in range(10):
            await place.put(f"a/{number}", b"x")
        await place.delete([f"a/{number}" for number in range(20) if number != 7])
        assert await names(place) == ["a/7"]
        await place.delete([])

    async def test_a_name_may_begin_like_another(self, place: BlobStore) -> None:
        for name in ("a", "a/b", "a/b/c", "a-b/c", "a.png", "ab"):
            await place.put(name, name.encode())
        assert sorted(await names(place)) == ["a", "a-b/c", "a.png", "a/b", "a/b/c", "ab"]
        assert sorted(await names(place, "a")) == ["a/b", "a/b/c"]
        await place.delete(["a/b"])
        assert await whole(place, "a") == b"a"
        assert await whole(place, "a/b/c") == b"a/b/c"

    async def test_a_listing_goes_on_after_a_name(self, place: BlobStore) -> None:
        made = [f"p/{'abc'[number % 3]}/{number:02}" for number in range(25)]
        for name in (*made, "q"):
            await place.put(name, b"x")
        for limit in (1, 4, 7, 25, 100):
            found = await names(place, "p", limit=limit)
            assert len(found) == len(made), f"each once, in pages of {limit}"
            assert sorted(found) == sorted(made)
        assert await place.list("p", after=(await names(place, "p"))[-1]) == []

    async def test_names_that_could_mean_another_are_refused_by_every_verb(self, place: BlobStore) -> None:
        for trick in TRICKS:
            with raises(BlobKeyError):
                await place.put(trick, b"x")
            with raises(BlobKeyError):
                await place.get(trick)
            with raises(BlobKeyError):
                await place.stat(trick)
            with raises(BlobKeyError):
                await place.copy("a", trick)
            with raises(BlobKeyError):
                await place.delete(["a", trick])
            with raises(BlobKeyError):
                place.link_get(trick, expires=60)
            with raises(BlobKeyError):
                place.link_put(trick, expires=60, content_type="image/png", length=1)
            if trick:
                with raises(BlobKeyError):
                    await place.list(trick)
        assert await names(place) == []

    async def test_it_says_that_it_can_be_used(self, place: BlobStore) -> None:
        await place.check()
        assert await names(place) == []


class BlobLinksConformance(BlobsSuite):
    """Signed links: what they are for, and nothing else."""

    async def test_a_link_reads(self, place: BlobStore) -> None:
        await place.put("a/b.png", b"0123456789", content_type="image/png")
        answer = await self.follow(place.link_get("a/b.png", expires=60))
        assert (answer.status, answer.body, answer.headers["content-type"]) == (
            200,
            b"0123456789",
            "image/png",
        )
        assert answer.headers["content-disposition"] == "attachment", (
            "it is saved, and never shown as a page of the place"
        )
        part = await self.follow(place.link_get("a/b.png", expires=60), range="bytes=3-5")
        assert (part.status, part.body, part.headers["content-range"]) == (206, b"345", "bytes 3-5/10")

    async def test_a_link_says_how_a_browser_saves_it(self, place: BlobStore) -> None:
        await place.put("a", b"x", content_type="text/html")
        answer = await self.follow(place.link_get("a", expires=60, download="my page.html"))
        assert answer.headers["content-disposition"].startswith('attachment; filename="my page.html"')
        for wrong in ('a"b', "a/b", "a\r\nX: 1", "", "x" * 151, "a;b"):
            with raises(UsageError, "download"):
                place.link_get("a", expires=60, download=wrong)

    async def test_a_link_writes_what_it_says(self, place: BlobStore) -> None:
        link = place.link_put("in/x", expires=60, content_type="image/png", length=5)
        assert (await self.follow(link, b"hello")).status == 200
        assert await whole(place, "in/x") == b"hello"
        stat = await place.stat("in/x")
        assert stat is not None
        assert stat.content_type == "image/png"

    async def test_another_length_is_refused(self, place: BlobStore) -> None:
        link = place.link_put("in/x", expires=60, content_type="image/png", length=5)
        for body in (b"hell", b"hello!", b""):
            assert (await self.follow(link, body, content_length=str(len(body)))).status == 403, body
        assert await place.stat("in/x") is None

    async def test_another_type_is_refused(self, place: BlobStore) -> None:
        link = place.link_put("in/x", expires=60, content_type="image/png", length=5)
        for kind in ("text/html", "image/svg+xml", "image/png; charset=utf-8"):
            assert (await self.follow(link, b"hello", content_type=kind)).status == 403, kind
        assert await place.stat("in/x") is None

    async def test_another_name_or_method_is_refused(self, place: BlobStore) -> None:
        await place.put("mine/a", b"mine")
        await place.put("yours/a", b"yours")
        reading, writing = (
            place.link_get("mine/a", expires=60),
            place.link_put("mine/new", expires=60, content_type="image/png", length=5),
        )
        for url in (
            reading.url.replace("mine/a", "yours/a"),
            reading.url.replace("mine/a", "mine/../yours/a"),
        ):
            assert (await self.bench.send("GET", url, {}, None)).status in {400, 403}, url
        assert (
            await self.bench.send(
                "PUT", writing.url.replace("mine/new", "yours/new"), writing.headers, b"hello"
            )
        ).status == 403
        assert (await self.bench.send("PUT", reading.url, {}, b"hello")).status == 403
        assert (await self.bench.send("DELETE", reading.url, {}, None)).status in {403, 405}
        assert (await self.bench.send("GET", writing.url, {}, None)).status in {403, 404}
        assert sorted(await names(place)) == ["mine/a", "yours/a"]
        assert await whole(place, "mine/a") == b"mine"

    async def test_a_link_that_was_changed_is_refused(self, place: BlobStore) -> None:
        await place.put("a", b"x")
        url = place.link_get("a", expires=60).url
        for changed in (
            url[:-1] + ("0" if url[-1] != "0" else "1"),
            url.partition("?")[0],
            f"{url}&x-extra=1",
            url.replace("=60", "=600"),
        ):
            if changed != url:
                assert (await self.bench.send("GET", changed, {}, None)).status == 403, changed

    async def test_an_expired_link_is_refused(self, place: BlobStore) -> None:
        await place.put("a", b"x")
        reading, writing = (
            place.link_get("a", expires=1),
            place.link_put("b", expires=1, content_type="image/png", length=5),
        )
        await self.bench.expire(writing)
        assert (await self.follow(reading)).status == 403
        assert (await self.follow(writing, b"hello")).status == 403
        assert await place.stat("b") is None

    async def test_how_long_a_link_may_last(self, place: BlobStore) -> None:
        for wrong in (0, -1, 7 * 86_400 + 1, float("nan"), "60"):
            with raises(UsageError, "expires"):
                place.link_get("a", expires=wrong)  # type: ignore[arg-type]
        assert "?" not in repr(place.link_get("a", expires=60)), "nobody reads it in a log"
