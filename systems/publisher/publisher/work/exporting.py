"""Everything of an artist as a zip: files, texts, history. Made by a job, as a stream, so that its size costs no memory."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import msgspec

from holdfast import Backoff, Cancel, Job, within
from holdfast.blobs import BlobMissing
from publisher.core import DESK, hf
from publisher.present import is_here

_PAGE = 200  # posts of one read
_POSTS = "id, state, title, details, only_stash, source, wished_at, due_at, published_at, deviationid, url, reason, made_at, changed_at"
_TABLES = {  # what is small enough to be read at once; the first column is what they are ordered by
    "templates.json": ("templates", "name, kind, text"),
    "prices.json": ("presets", "name, low, high, is_default"),
    "automations.json": (
        "automations",
        "name, description, is_on, selection, agreement, rules, defaults, note",
    ),
    "sale-queue.json": ("sales", "made_at, post_id, price, state, attempts, error, ended_at"),
    "api-keys.json": ("api_keys", "made_at, name, prefix, used_at, revoked_at"),
}


class Sink(io.RawIOBase):
    """What the zip writes, until somebody takes it."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


@hf.task(
    name="account.export",
    queue=DESK,
    retry=Backoff(attempts=4, first=10, ceiling=300),
    timeout=3 * 3600,
    concurrency=("exports", 2),
)
async def export(job: Job, export_id: str) -> None:
    artist_id = await _artist(export_id)
    with within(tenant=artist_id):
        staged = await hf.blobs.stage(pieces(artist_id), content_type="application/zip")
        key = f"exports/{export_id}.zip"
        async with job.commit() as tx:
            changed = await is_here(tx, artist_id) and await tx.execute(
                "UPDATE exports SET key = $1, size = $2, ready_at = $3 WHERE id = $4",
                key,
                staged.size,
                await hf.now(),
                export_id,
            )
            if changed:
                await hf.blobs.commit(staged, key, tx=tx)


async def _artist(export_id: str) -> str:
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT artist_id FROM exports WHERE id = $1 AND key IS NULL", export_id)
    if not rows:
        raise Cancel("The export is gone, or ready.")
    return str(rows[0][0])


async def pieces(artist_id: str) -> AsyncIterator[bytes]:
    """The zip, as it grows."""
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in await _small(artist_id):
            archive.writestr(name, text)
            yield sink.take()
        async for piece in _posts(archive, sink, artist_id):
            yield piece
        async for piece in _files(archive, sink, artist_id):
            yield piece
    yield sink.take()


async def _small(artist_id: str) -> list[tuple[str, bytes]]:
    async with hf.transaction() as tx:
        account = "username, userid, mail, zone, jitter, notices, post_count, made_at"
        found = await tx.fetch(f"SELECT {account} FROM artists WHERE id = $1", artist_id)  # noqa: S608  our own columns
        made = [("account.json", _json(_named(account, found)))]
        for name, (table, columns) in _TABLES.items():
            rows = await tx.fetch(
                f"SELECT {columns} FROM {table} WHERE artist_id = $1 ORDER BY 1",  # noqa: S608  our own names
                artist_id,
            )
            made.append((name, _json(_named(columns, rows))))
    return made


async def _posts(archive: zipfile.ZipFile, sink: Sink, artist_id: str) -> AsyncIterator[bytes]:
    """One line of JSON for each post, and a table of what was published for people."""
    sheet = io.StringIO()
    table = csv.writer(sheet)
    table.writerow(("published", "title", "url"))
    with archive.open("posts.jsonl", "w", force_zip64=True) as entry:
        async for post in _each_post(artist_id):
            entry.write(_json(post, indent=0) + b"\n")
            if post["state"] == "published":
                at = datetime.fromtimestamp(post["published_at"], UTC).isoformat(timespec="seconds")
                table.writerow((at, _plain(post["title"]), post["url"]))
            yield sink.take()
    archive.writestr("published.csv", sheet.getvalue())
    yield sink.take()


async def _each_post(artist_id: str) -> AsyncIterator[dict[str, Any]]:
    last = ""
    while True:
        async with hf.transaction() as tx:
            rows = await tx.fetch(
                f"SELECT {_POSTS} FROM posts WHERE artist_id = $1 AND id > $2 ORDER BY id LIMIT $3",  # noqa: S608  our own columns
                artist_id,
                last,
                _PAGE,
            )
            found = _named(_POSTS, rows)
            for post in found:
                post["details"] = msgspec.json.decode(post["details"])
                history = await tx.fetch(
                    "SELECT at, kind, words, who FROM happenings WHERE post_id = $1 ORDER BY id", post["id"]
                )
                post["history"] = _named("at, kind, words, who", history)
                receipts = await tx.fetch("SELECT story FROM receipts WHERE post_id = $1", post["id"])
                post["receipt"] = msgspec.json.decode(receipts[0][0]) if receipts else None
        for post in found:
            yield post
        if len(found) < _PAGE:
            return
        last = found[-1]["id"]


async def _files(archive: zipfile.ZipFile, sink: Sink, artist_id: str) -> AsyncIterator[bytes]:
    """Stored as they are: pictures do not get smaller."""
    last = ""
    while True:
        async with hf.transaction() as tx:
            rows = await tx.fetch(
                "SELECT id, name, key FROM files WHERE artist_id = $1 AND id > $2 AND key IS NOT NULL AND deleted_at IS NULL "
                "ORDER BY id LIMIT $3",
                artist_id,
                last,
                _PAGE,
            )
        for file_id, name, key in rows:
            info = zipfile.ZipInfo(f"files/{file_id}{_suffix(name)}")
            try:
                reading = await hf.blobs.open(key)
            except BlobMissing:
                continue  # it was deleted while we were at it
            with archive.open(info, "w", force_zip64=True) as entry:
                async for piece in reading:
                    entry.write(piece)
                    yield sink.take()
            yield sink.take()
        if len(rows) < _PAGE:
            return
        last = rows[-1][0]


def _suffix(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return suffix if suffix.isascii() and suffix[1:].isalnum() and len(suffix) <= 6 else ""


def _named(columns: str, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    names = [each.strip() for each in columns.split(",")]
    return [dict(zip(names, row, strict=True)) for row in rows]


def _json(value: Any, *, indent: int = 1) -> bytes:
    text = msgspec.json.encode(value)
    return msgspec.json.format(text, indent=indent) if indent else text


def _plain(text: str) -> str:
    """A spreadsheet shall not take it for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
