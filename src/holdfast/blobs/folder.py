"""Blobs in a folder: for one machine, or for several that share a file system which keeps `rename` and `fsync`."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from holdfast.blobs import files
from holdfast.blobs.errors import BlobMissing, BlobRefused, BlobUnavailable
from holdfast.blobs.files import SUFFIX, Known
from holdfast.blobs.keys import check_key
from holdfast.blobs.links import Signer
from holdfast.blobs.port import DEFAULT_TYPE, Content, Link, Stat, Stored
from holdfast.blobs.streams import CHUNK, Counted, check_length, check_type
from holdfast.kernel.awaits import must_await
from holdfast.kernel.ids import new_id
from holdfast.kernel.loops import call_in_thread

T = TypeVar("T")
_PARTS = ".parts"  # no key begins with a dot
_FOR_NOW = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE)


class FolderStore:
    """`public` is where the program serves `holdfast.web.SignedFiles`, such as https://shop.example.org/files."""

    def __init__(self, path: str | Path, *, public: str = "/blobs") -> None:
        self.path = Path(path).absolute()
        self.signer = Signer(self.path, public)

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
        target, known = self._place(name), Known(check_type(content_type))
        counted = Counted(content, length=check_length(length), sha256=sha256, most=most)
        part = self.path / _PARTS / new_id()
        file: BinaryIO = await _writing(partial(self._begin, part))
        try:
            try:
                async for chunk in counted:
                    await _writing(partial(file.write, chunk))
                await _writing(partial(files.finish, file, known))
            finally:
                file.close()
            await _writing(partial(files.move_in, part, target, self.path))
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return counted.stored

    async def get(self, name: str, *, start: int = 0, end: int | None = None) -> FileReading:
        path = self._place(name)
        try:
            file, stat = await _in_thread(partial(files.open_object, path, name))
        except FileNotFoundError:
            raise BlobMissing(f"There is no object {name!r} in {self.path}.") from None
        start = min(max(0, start), stat.size)
        return FileReading(file, stat, start, stat.size if end is None else max(start, min(end, stat.size)))

    async def stat(self, name: str) -> Stat | None:
        path = self._place(name)

        def look() -> Stat:
            file, stat = files.open_object(path, name)
            file.close()
            return stat

        try:
            return await _in_thread(look)
        except FileNotFoundError:
            return None

    @must_await("blobs.copy")
    async def copy(self, source: str, target: str) -> None:
        check_key(target, "name")
        reading = await self.get(source)
        try:
            kind = reading.stat.content_type or DEFAULT_TYPE
            await self.put(target, reading, content_type=kind, length=reading.stat.size)
        finally:
            await reading.aclose()

    @must_await("blobs.delete")
    async def delete(self, names: Sequence[str]) -> None:
        paths = [self._place(name) for name in names]

        def remove() -> None:
            for path in paths:
                files.remove(path, self.path)

        await _in_thread(remove)

    async def list(self, folder: str = "", *, after: str = "", limit: int = 1000) -> list[Stat]:
        if folder:
            check_key(folder, "folder")

        def look() -> list[Stat]:
            found: list[Stat] = []
            for name, path in _walked(self.path, folder, after):
                try:
                    file, stat = files.open_object(path, name)
                except FileNotFoundError:  # removed meanwhile
                    continue
                file.close()
                found.append(stat)
                if len(found) == limit:
                    break
            return found

        return await _in_thread(look)

    async def tidy(self, before: float) -> int:
        def remove() -> int:
            folder, count = self.path / _PARTS, 0
            for part in folder.iterdir() if folder.is_dir() else ():
                if part.stat().st_mtime < before:
                    part.unlink(missing_ok=True)
                    count += 1
            return count

        return await _in_thread(remove)

    def link_get(self, name: str, *, expires: float, download: str | None = None) -> Link:
        return self.signer.link("GET", check_key(name), expires=expires, download=download)

    def link_put(self, name: str, *, expires: float, content_type: str, length: int) -> Link:
        kind, size = check_type(content_type), check_length(length)
        return self.signer.link("PUT", check_key(name), expires=expires, content_type=kind, length=size)

    async def check(self) -> None:
        name = f"check/{new_id()}"
        await self.put(name, b"holdfast")
        await self.delete([name])

    async def close(self) -> None:
        """There is nothing to close."""

    def _begin(self, part: Path) -> BinaryIO:
        part.parent.mkdir(parents=True, exist_ok=True)
        return part.open("xb")

    def _place(self, name: str) -> Path:
        return self.path / (check_key(name, "name") + SUFFIX)

    def __repr__(self) -> str:
        return f"file:{self.path}"


class FileReading:
    """An open file: what is written under its name meanwhile changes nothing for whoever reads it."""

    def __init__(self, file: BinaryIO, stat: Stat, start: int, end: int) -> None:
        self._file, self.stat, self._start, self._end = file, stat, start, end

    @property
    def size(self) -> int:
        return self._end - self._start

    async def __aiter__(self) -> AsyncIterator[bytes]:
        position = self._start
        try:
            while position < self._end:
                piece = await _in_thread(partial(self._read, position, min(CHUNK, self._end - position)))
                if not piece:
                    raise BlobUnavailable(f"{self.stat.name!r} ended at {position:,} of {self._end:,} bytes.")
                position += len(piece)
                yield piece
        finally:
            self._file.close()

    def _read(self, position: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, position)

    async def aclose(self) -> None:
        self._file.close()


def _walked(root: Path, folder: str, after: str) -> Iterator[tuple[str, Path]]:
    """Names in the order of their letters, which is that of S3: a folder's slash counts as one."""
    try:
        entries = [*os.scandir(root / folder)]
    except (FileNotFoundError, NotADirectoryError):
        return
    before = f"{folder}/" if folder else ""
    named = sorted(
        (before + (each.name + "/" if each.is_dir(follow_symlinks=False) else each.name[: -len(SUFFIX)]), each)
        for each in entries
        if not each.name.startswith(".") and (each.name.endswith(SUFFIX) or each.is_dir(follow_symlinks=False))
    ) if entries else []  # fmt: skip
    for name, entry in named:
        if name.endswith("/"):
            if name > after or after.startswith(name):
                yield from _walked(root, name[:-1], after)
        elif name > after:
            yield name, Path(entry.path)


@contextmanager
def _said() -> Iterator[None]:
    """Errors of the system as ours; that a file is not there is for the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        kind = BlobUnavailable if error.errno in _FOR_NOW else BlobRefused
        raise kind(f"The folder of the blobs could not do it: {error}") from error


async def _in_thread(call: Callable[[], T]) -> T:
    with _said():
        return await call_in_thread(call)


async def _writing(call: Callable[[], T]) -> T:
    """Who writes looks for nothing: what is not there then is the folder itself, or was removed under us."""
    try:
        return await _in_thread(call)
    except FileNotFoundError as error:
        raise BlobRefused(f"The folder of the blobs could not do it: {error}") from error
