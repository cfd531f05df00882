"""Blobs in a bucket of an S3: AWS, R2, MinIO and others, by what the settings say and nothing else."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from holdfast.blobs.errors import BlobMissing, BlobRefused, BlobUnavailable
from holdfast.blobs.keys import check_key
from holdfast.blobs.links import LONGEST, check_download
from holdfast.blobs.port import DEFAULT_TYPE, Content, Link, Stat, Stored
from holdfast.blobs.settings import Bucket
from holdfast.blobs.sigv4 import Account, presign
from holdfast.blobs.streams import Counted, check_length, check_type
from holdfast.kernel.awaits import must_await
from holdfast.kernel.clock import now
from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.names import check_seconds

T = TypeVar("T")
_PART = 8 * 1024 * 1024  # bytes of one part of a large object; S3 takes 10,000 of them
_AT_ONCE = 3  # parts under way: so many are in memory
_TEMPORARY = timedelta(seconds=30)


class S3Store:
    """Nothing is connected before the first use; a child of this process connects anew."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self._made: tuple[int, Any] | None = None

    @must_await("blobs.put")
    async def put(
        self,
        name: str,
        content: Content,
        *,
        content_type: str = DEFAULT_TYPE,
        length: int | None = None,
        sha256: str | None = None,
        most: int | None = None,
    ) -> Stored:
        import obstore  # noqa: PLC0415  an extra

        path = check_key(name, "name")
        attributes: Any = {"Content-Type": check_type(content_type)}
        counted = Counted(content, length=check_length(length), sha256=sha256, most=most)
        chunks = counted.__aiter__()
        try:
            first, is_whole = await _first(chunks)
            if is_whole:  # in one request: the usual case, and the cheaper one
                await self._ask(
                    obstore.put_async(self._place(), path, first, attributes=attributes, use_multipart=False),
                    name,
                )
            else:
                await self._ask(
                    obstore.put_async(
                        self._place(), path, _joined(first, chunks), attributes=attributes, use_multipart=True, chunk_size=_PART,
                        max_concurrency=_AT_ONCE,
                    ),
                    name,
                )  # fmt: skip
        except Exception as error:
            if counted.failure is not None and error is not counted.failure:
                raise counted.failure from None
            raise
        finally:
            await chunks.aclose()
        return counted.stored

    async def get(self, name: str, *, start: int = 0, end: int | None = None) -> S3Reading:
        import obstore  # noqa: PLC0415

        path = check_key(name, "name")
        options: Any = None
        if start > 0 or end is not None:
            stat = await self.stat(name)
            if stat is None:
                raise _missing(name, self)
            start = min(max(0, start), stat.size)
            end = stat.size if end is None else max(start, min(end, stat.size))
            if start == end:  # S3 has no empty ranges
                return S3Reading(None, stat, 0)
            options = {"range": (start, end)}
        found = await self._ask(obstore.get_async(self._place(), path, options=options), name)
        begin, until = found.range
        return S3Reading(found, _stat(name, found), until - begin)

    async def stat(self, name: str) -> Stat | None:
        import obstore  # noqa: PLC0415

        path = check_key(name, "name")
        with suppress(BlobMissing):
            return _stat(
                name, await self._ask(obstore.get_async(self._place(), path, options={"head": True}), name)
            )
        return None

    @must_await("blobs.copy")
    async def copy(self, source: str, target: str) -> None:
        import obstore  # noqa: PLC0415

        paths = check_key(source, "name"), check_key(target, "name")
        await self._ask(obstore.copy_async(self._place(), *paths), source)

    @must_await("blobs.delete")
    async def delete(self, names: Sequence[str]) -> None:
        import obstore  # noqa: PLC0415

        if paths := [check_key(name, "name") for name in names]:
            with suppress(BlobMissing):
                await self._ask(obstore.delete_async(self._place(), paths), paths[0])

    async def list(self, folder: str = "", *, after: str = "", limit: int = 1000) -> list[Stat]:
        import obstore  # noqa: PLC0415

        prefix = check_key(folder, "folder") if folder else None
        found: list[Stat] = []
        stream = obstore.list(self._place(), prefix, offset=after or None, chunk_size=min(limit, 1000))
        pages = aiter(stream)
        while len(found) < limit:
            page: Any = await self._ask(_next(pages), folder)
            if not page:
                break
            found += [
                Stat(each["path"], each["size"], each["last_modified"].timestamp(), None) for each in page
            ]
        return found[:limit]

    async def tidy(self, before: float) -> int:  # noqa: ARG002
        """What a killed writer leaves is removed by a rule of the bucket (AbortIncompleteMultipartUpload)."""
        return 0

    def link_get(self, name: str, *, expires: float, download: str | None = None) -> Link:
        name_of = "" if download is None else f'; filename="{check_download(download)}"'
        query = {"response-content-disposition": f"attachment{name_of}"}
        return self._link("GET", name, {}, expires, query)

    def link_put(self, name: str, *, expires: float, content_type: str, length: int) -> Link:
        headers = {"Content-Type": check_type(content_type), "Content-Length": str(check_length(length))}
        return self._link("PUT", name, headers, expires, {})

    def _link(
        self, method: str, name: str, headers: dict[str, str], expires: float, query: dict[str, str]
    ) -> Link:
        bucket, seconds = self.bucket, int(check_seconds("expires", expires, 1.0, LONGEST))
        if bucket.access_key is None or bucket.secret_key is None:
            raise UsageError(
                "Links are signed with an access key and its secret, and the settings have none: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
        account = Account(bucket.access_key, bucket.secret_key, bucket.session_token, bucket.region)
        whole = f"{bucket.base}/{bucket.prefix + '/' if bucket.prefix else ''}{check_key(name, 'name')}"
        moment = now()
        url = presign(account, method, whole, headers, expires=seconds, moment=moment, query=query)
        return Link(method, url, headers, moment + seconds)

    async def check(self) -> None:
        name = f"check/{new_id()}"
        await self.put(name, b"holdfast")
        await self.delete([name])

    async def close(self) -> None:
        self._made = None

    def _place(self) -> Any:
        if self._made is None or self._made[0] != os.getpid():
            self._made = (os.getpid(), _connect(self.bucket))
        return self._made[1]

    async def _ask(self, work: Awaitable[T], name: str) -> T:
        from obstore import exceptions as e  # noqa: PLC0415

        try:
            return await work
        except (e.NotFoundError, FileNotFoundError):
            raise _missing(name, self) from None
        except (
            e.PermissionDeniedError,
            e.UnauthenticatedError,
            e.InvalidPathError,
            e.UnknownConfigurationKeyError,
        ) as error:
            raise BlobRefused(f"{self.bucket!r} refused it: {_short(error)}") from error
        except e.BaseError as error:
            raise BlobUnavailable(f"{self.bucket!r} did not do it: {_short(error)}") from error

    def __repr__(self) -> str:
        return repr(self.bucket)


class S3Reading:
    """An answer of the S3 that is still coming."""

    def __init__(self, found: Any, stat: Stat, size: int) -> None:
        self._found, self.stat, self.size = found, stat, size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        from obstore import exceptions as e  # noqa: PLC0415

        if self._found is None:
            return
        came = 0
        try:
            async for piece in self._found.stream(min_chunk_size=1024 * 1024):
                came += len(piece)
                yield bytes(piece)
        except e.BaseError as error:
            raise BlobUnavailable(
                f"{self.stat.name!r} broke off after {came:,} of {self.size:,} bytes: {_short(error)}"
            ) from error
        finally:
            self._found = None
        if came != self.size:
            raise BlobUnavailable(f"{self.stat.name!r} broke off after {came:,} of {self.size:,} bytes.")

    async def aclose(self) -> None:
        self._found = None


def _connect(bucket: Bucket) -> Any:
    try:
        from obstore.store import S3Store as Place  # noqa: PLC0415
    except ImportError as error:
        raise UsageError("s3:// needs obstore: install holdfast[s3].") from error
    known: dict[str, Any] = {}
    if bucket.access_key is not None:
        known = {"access_key_id": bucket.access_key, "secret_access_key": bucket.secret_key}
        if bucket.session_token is not None:
            known["session_token"] = bucket.session_token
    return Place(
        bucket.name,
        prefix=bucket.prefix or None,
        endpoint=bucket.base if bucket.virtual else bucket.endpoint,
        region=bucket.region,
        virtual_hosted_style_request=bucket.virtual,
        client_options={
            "allow_http": bucket.endpoint.startswith("http://"), "connect_timeout": "5s", "read_timeout": "30s", "timeout": "24h",
        },
        retry_config={"max_retries": 3, "retry_timeout": _TEMPORARY},
        **known,
    )  # fmt: skip


async def _first(chunks: AsyncIterator[bytes]) -> tuple[bytes, bool]:
    """As much as goes in one request, and whether that is all."""
    first = bytearray()
    async for chunk in chunks:
        first += chunk
        if len(first) > _PART:
            return bytes(first), False
    return bytes(first), True


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk


async def _next(pages: AsyncIterator[Any]) -> Any:
    with suppress(StopAsyncIteration):
        return await anext(pages)
    return None


def _stat(name: str, found: Any) -> Stat:
    meta = found.meta
    return Stat(name, meta["size"], meta["last_modified"].timestamp(), found.attributes.get("Content-Type"))


def _missing(name: str, place: S3Store) -> BlobMissing:
    return BlobMissing(f"There is no object {name!r} in {place!r}.")


def _short(error: BaseException) -> str:
    """Its first line: the rest is the library's own structures, and may hold signed addresses."""
    return str(error).partition("\n")[0].partition("?")[0][:300]
