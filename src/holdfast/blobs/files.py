"""How the folder keeps an object: one file, its content first, then what must be known of it.

Content and type are in one file, so that one rename makes both true. The content begins at the first byte: most programs open it.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from holdfast.blobs.errors import BlobUnavailable
from holdfast.blobs.port import Stat
from holdfast.kernel.clock import now

SUFFIX = "~"  # no key has it: a file `a` and a folder `a` stand side by side
_END = struct.Struct(">I4s")
_MAGIC = b"HFB1"
_TRIES = 10  # to make the folder that another is just removing


class Known(msgspec.Struct, frozen=True):
    content_type: str


def trailer(known: Known) -> bytes:
    text = msgspec.json.encode(known)
    return text + _END.pack(len(text), _MAGIC)


def open_object(path: Path, name: str) -> tuple[BinaryIO, Stat]:
    """The open file, at its beginning. FileNotFoundError when there is none."""
    file = path.open("rb")
    try:
        status = os.fstat(file.fileno())
        size, known = _known(file, status.st_size, path)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file, Stat(name, size, status.st_mtime, known.content_type)


def _known(file: BinaryIO, whole: int, path: Path) -> tuple[int, Known]:
    """The size of its content, and the rest."""
    strange = BlobUnavailable(
        f"{path} is no file that Holdfast has written, or it was changed since. Take it out of the folder."
    )
    if whole < _END.size:
        raise strange
    file.seek(whole - _END.size)
    length, magic = _END.unpack(file.read(_END.size))
    start = whole - _END.size - length
    if magic != _MAGIC or start < 0:
        raise strange
    file.seek(start)
    try:
        return start, msgspec.json.decode(file.read(length), type=Known)
    except msgspec.DecodeError:
        raise strange from None


def move_in(part: Path, target: Path, root: Path) -> None:
    """Make the finished part the object: atomically, and for good."""
    for tries in range(_TRIES):
        made = _make_folders(target.parent, root)
        try:
            part.replace(target)
            break
        except FileNotFoundError:
            if tries == _TRIES - 1 or not part.exists():
                raise
    for folder in {target.parent, *made}:
        sync_folder(folder)


def _make_folders(folder: Path, root: Path) -> list[Path]:
    """Returns those in which a new folder stands now."""
    made = []
    missing = [each for each in (folder, *folder.parents) if each.is_relative_to(root) and not each.is_dir()]
    for each in reversed(missing):
        with suppress(FileExistsError, FileNotFoundError):
            each.mkdir()
            made.append(each.parent)
    return made


def sync_folder(folder: Path) -> None:
    with suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def finish(file: BinaryIO, known: Known) -> None:
    """On the disk when this returns; its time is that of this process, which a test may turn."""
    file.write(trailer(known))
    file.flush()
    os.utime(file.fileno(), (now(), now()))
    os.fsync(file.fileno())


def remove(path: Path, root: Path) -> None:
    """And the folders that are empty then."""
    with suppress(FileNotFoundError, NotADirectoryError):
        path.unlink()
        sync_folder(path.parent)
    folder = path.parent
    while folder != root and folder.is_relative_to(root):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
