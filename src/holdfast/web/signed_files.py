"""SignedFiles: the ASGI app that serves the signed links of a folder of blobs, as an S3 serves its own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable
from urllib.parse import parse_qsl, quote

from holdfast.blobs.errors import BlobKeyError, BlobMismatch, BlobMissing, LinkRefused
from holdfast.blobs.folder import FileReading, FolderStore
from holdfast.blobs.links import Granted
from holdfast.blobs.port import DEFAULT_TYPE, BlobStore
from holdfast.kernel.errors import UsageError
from holdfast.kernel.telemetry import note
from holdfast.web.asgi import Message, Receive, Scope, Send, header, path_of
from holdfast.web.problems import Problem

_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})", re.ASCII)
# What was uploaded is never run: not as a page of ours, and not as what its bytes look like.
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; sandbox"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"private, no-store"),
]


@runtime_checkable
class KeepsBlobs(Protocol):
    """`hf.blobs`, or whatever else knows the place of the blobs."""

    def place(self) -> BlobStore: ...


class Gone(Exception):
    """The client has hung up before it had sent everything."""


class SignedFiles:
    """`Mount("/blobs", SignedFiles(hf.blobs))`. Whoever has a link that `hf.blobs` has signed may do what it says, until it expires.

    Bodies are counted against the length in the link while they come. Mount it outside of IdempotencyKeys: a PUT may be repeated as it is.
    """

    def __init__(self, blobs: KeepsBlobs | BlobStore) -> None:
        self._blobs = blobs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise UsageError(f"SignedFiles serves HTTP, not {scope['type']}.")
        folder = self._folder()
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        try:
            granted = folder.signer.granted(method, _name(scope), _query(scope))
            if method == "PUT":
                await _take(folder, granted, scope, receive, send)
            elif method == "GET":
                await _give(folder, granted, scope, send)
            else:
                raise LinkRefused("Links are for GET and PUT.")  # noqa: TRY301
        except (LinkRefused, BlobKeyError) as error:
            note("blob.link_refused", method=scope["method"], path=path_of(scope), error=str(error))
            await _refused(str(error) if isinstance(error, LinkRefused) else "No such file.").send(
                scope, send
            )
        except BlobMissing:
            await _NOT_FOUND.send(scope, send)

    def _folder(self) -> FolderStore:
        found = self._blobs.place() if isinstance(self._blobs, KeepsBlobs) else self._blobs
        if not isinstance(found, FolderStore):
            raise UsageError(
                "SignedFiles serves a folder of blobs. An S3 serves its links itself: leave the mount out."
            )
        return found


async def _take(folder: FolderStore, granted: Granted, scope: Scope, receive: Receive, send: Send) -> None:
    if granted.content_type is None or granted.length is None:
        raise LinkRefused("This link is not for writing.")
    if header(scope, b"content-type") != granted.content_type:
        raise LinkRefused(f"This link is for the type {granted.content_type}.")
    if header(scope, b"content-length") != str(granted.length):
        raise LinkRefused(f"This link is for {granted.length:,} bytes.")
    try:
        await folder.put(
            granted.name, _body(receive), content_type=granted.content_type, length=granted.length
        )
    except BlobMismatch as error:
        raise LinkRefused(f"This link is for {granted.length:,} bytes.") from error
    except Gone:
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        yield message.get("body", b"")
        more = message.get("more_body", False)


async def _give(folder: FolderStore, granted: Granted, scope: Scope, send: Send) -> None:
    wanted = header(scope, b"range")
    reading = await folder.get(granted.name)
    if (part := _part(wanted, reading.stat.size)) is not None:
        await reading.aclose()
        if part[0] >= part[1]:
            await _NO_SUCH_RANGE.send(
                scope, send, fields=[(b"content-range", b"bytes */%d" % reading.stat.size)]
            )
            return
        reading = await folder.get(granted.name, start=part[0], end=part[1])
    try:
        await _send(reading, part, granted, scope, send)
    finally:
        await reading.aclose()


async def _send(
    reading: FileReading, part: tuple[int, int] | None, granted: Granted, scope: Scope, send: Send
) -> None:
    fields = [*_SAFE, (b"content-type", (reading.stat.content_type or DEFAULT_TYPE).encode())]
    fields += [(b"content-length", b"%d" % reading.size), (b"accept-ranges", b"bytes"), _disposition(granted)]
    if part is not None:
        fields.append((b"content-range", b"bytes %d-%d/%d" % (part[0], part[1] - 1, reading.stat.size)))
    await send({"type": "http.response.start", "status": 200 if part is None else 206, "headers": fields})
    if scope["method"] != "HEAD":
        async for piece in reading:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _disposition(granted: Granted) -> tuple[bytes, bytes]:
    """Saved, not shown, under the name that the link says."""
    name = granted.download
    return b"content-disposition", b"attachment" if name is None else _attachment(name)


def _attachment(name: str) -> bytes:
    plain = name.encode("ascii", "replace").decode()
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}".encode()


def _part(wanted: str | None, size: int) -> tuple[int, int] | None:
    """The one range that was asked for. What is no range of ours means the whole, as HTTP has it."""
    found = None if wanted is None else _RANGE.fullmatch(wanted.strip())
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        return max(0, size - int(found[2])), size
    return int(found[1]), min(size, int(found[2]) + 1) if found[2] else size


def _name(scope: Scope) -> str:
    """As it was sent: a path with anything encoded in it is no name of ours."""
    raw = scope.get("raw_path")
    if isinstance(raw, bytes) and b"%" in raw.partition(b"?")[0]:
        raise LinkRefused("This link was not made here, or was changed.")
    return path_of(scope).removeprefix("/")


def _query(scope: Scope) -> dict[str, str]:
    pairs = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    if len(dict(pairs)) != len(pairs):
        raise LinkRefused("This link was not made here, or was changed.")
    return dict(pairs)


def _refused(detail: str) -> Problem:
    return Problem(status=403, title="This link does not allow that", code="LINK_REFUSED", detail=detail)


_NOT_FOUND = Problem(status=404, title="There is no such file", code="FILE_NOT_FOUND")
_NO_SUCH_RANGE = Problem(status=416, title="The file has no such bytes", code="RANGE_NOT_SATISFIABLE")
