"""What a SQLite store refuses, and why: other libraries on its file, broken libraries, network file systems."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UnsupportedStore, WrongConnection
from holdfast.kernel.telemetry import note

_WHY = (
    "One SQLite library per process and file: SQLite's locks belong to the process, so two libraries in one process do "
    "not see each other's, and the first that closes the file drops the other's; commits are then lost."
)
_INSTEAD = (
    "Use `async with hf.transaction() as tx:` and pass that tx; its execute and fetch run your own statements "
    "in the transaction that stores the job. For SQLAlchemy, pass a session of `hf.session()`."
)


# A transaction that is not ours.


def refuse(tx: object) -> NoReturn:
    """Raise WrongConnection: on SQLite, tx is `hf.transaction()` and nothing else."""
    kind = f"{type(tx).__module__}.{type(tx).__qualname__}"
    raise WrongConnection(f"tx is a {kind}. {_reason(tx)} {_INSTEAD}")


def _reason(tx: object) -> str:
    packages = {cls.__module__.partition(".")[0] for cls in type(tx).__mro__}
    if driver_of(tx).startswith(DRIVER):
        return "It makes connections and has no transaction. Pass a session or connection that it has made."
    if "sqlalchemy" in packages and (dialect := _dialect(tx)) not in ("sqlite", None):
        return f"It leads to {dialect}, and this store is a SQLite file."
    return next((why for names, why in _REASONS if packages & names), "It is no transaction of this store.")


_REASONS = (
    (
        {"sqlite3", "aiosqlite", "pysqlite3", "sqlalchemy"},
        f"It uses another SQLite library than this store, whose own comes with APSW. {_WHY}",
    ),
    (
        {"apsw"},
        "It is another connection than the store's own, so another transaction: the job would not commit with it.",
    ),
    ({"asyncpg", "psycopg", "psycopg2"}, "It leads to PostgreSQL, and this store is a SQLite file."),
    ({"holdfast"}, "It is a transaction of another store."),
)


DRIVER = "holdfast"  # of SQLAlchemy's dialects over this store


def driver_of(tx: Any) -> str:
    """By which driver a SQLAlchemy connection, session or engine leads to its database; empty: it is none, or has no bind."""
    try:
        return str(_bind(tx).dialect.driver)
    except Exception:  # noqa: BLE001  a session without a bind; it is refused anyway
        return ""


def is_engine(tx: Any) -> bool:
    return not hasattr(tx, "get_bind") and not hasattr(tx, "in_transaction")


def _dialect(tx: Any) -> str | None:
    """Where it leads, without connecting."""
    try:
        return str(_bind(tx).dialect.name)
    except Exception:  # noqa: BLE001  as above
        return None


def _bind(tx: Any) -> Any:
    return tx.get_bind() if hasattr(tx, "get_bind") else tx


# Another library on the file.

_ours: dict[tuple[int, int], set[int]] = {}  # by file: the descriptors that our own connections opened
# Connections of ours that are being opened, by process: whose descriptors these are, is not known yet.
_opening = set[tuple[int, int]]()
_numbers = count(1)


def foreign_descriptor(path: str | os.PathLike[str]) -> str | None:
    """Why this file cannot be used here: something else in this process has it open. None: nothing, or nobody can tell.

    A count of our own connections would not do: SQLite keeps the descriptor of a closed connection open for as long as
    another one has locks on the file.
    """
    seen = _foreign(path)
    return seen and f"{seen} Close it before the store is opened, or do that work in another process."


def _foreign(path: str | os.PathLike[str]) -> str | None:
    if (file := _file(path)) is None:
        return None
    before, found = next(_numbers), _descriptors(file)
    is_opening = any(process == os.getpid() for process, _ in [*_opening])
    if is_opening or next(_numbers) != before + 1:  # one of ours comes just now
        return None
    _ours[file] = _ours.get(file, set()) & found
    if not (foreign := found - _ours[file]):
        return None
    loaded = " (the interpreter's sqlite3 is loaded here)" if "_sqlite3" in sys.modules else ""
    return f"Something else in this process has {os.fspath(path)!r} open: descriptor {min(foreign)}{loaded}. {_WHY}"


class Watch:
    """Looks now and then whether another library has come to the file since it was opened. One that has is fatal.

    Also when it is gone again: with its close all locks of this process were dropped, and our connections do not take them anew.
    """

    EVERY = 2.0  # seconds

    def __init__(self, path: str) -> None:
        self._path, self._next = path, 0.0
        self._found: str | None = None

    def look(self) -> None:
        """Raise UnsupportedStore from then on."""
        if self._found is None and monotonic() >= self._next:
            self._next = monotonic() + self.EVERY
            self._found = _foreign(self._path)
            if self._found is not None:
                note("store.foreign_library", path=self._path, found=self._found)
        if self._found is not None:
            raise UnsupportedStore(
                f"{self._found} Nothing more is written, since it could be lost. Mend the program, and start it anew; or close "
                "that connection, leave this store, and open it again."
            )


@contextmanager
def our_descriptors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Around the opening of a connection of our own: what is open on the file afterwards, and was not before, is ours."""
    opening = os.getpid(), next(_numbers)
    _opening.add(opening)
    before = set() if (file := _file(path)) is None else _descriptors(file)
    try:
        yield
    finally:  # a connection that failed may leave its descriptor open for a while: it is ours all the same
        if (file := _file(path)) is not None:
            _ours.setdefault(file, set()).update(_descriptors(file) - before)
        _opening.discard(opening)


def descriptor_closed(path: str | os.PathLike[str]) -> None:
    """After a connection of our own was closed: its number may be given to someone else's file next."""
    if (file := _file(path)) is not None and file in _ours:
        _ours[file] &= _descriptors(file)


# A fork in the middle of a transaction.

_carried: dict[
    int, tuple[tuple[int, int] | None, int]
] = {}  # by connection: its file, and the process that forked with it open


def carried(path: str | os.PathLike[str], connection: object) -> None:
    """This process is forked while a connection of its own to the file is open, in the middle of a transaction."""
    _carried.setdefault(id(connection), (_file(path), os.getpid()))


def not_carried(connection: object) -> None:
    """At the next fork it is closed."""
    _carried.pop(id(connection), None)


def check_fork(path: str | os.PathLike[str]) -> None:
    """Raise UnsupportedStore in a child that was forked while its parent was in the middle of a transaction."""
    file, here = _file(path), os.getpid()
    if file is not None and any(each == file and process != here for each, process in _carried.values()):
        raise UnsupportedStore(
            f"This process was forked while a transaction was open on {os.fspath(path)!r}, and SQLite will believe here "
            "that it is, for as long as the process lives. Fork outside of transactions, or start the process anew "
            "(multiprocessing: `spawn`)."
        )


def _file(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    # stat, never open: closing any descriptor of a file drops all locks that the process has on it.
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _descriptors(file: tuple[int, int]) -> set[int]:
    """Which descriptors of this process are open on the file; empty where the system does not say."""
    try:
        numbers = [int(entry.name) for entry in Path("/dev/fd").iterdir()]
    except OSError:
        return set()
    found = set()
    for number in numbers:
        try:
            status = os.fstat(number)
        except OSError:  # closed meanwhile
            continue
        if (status.st_dev, status.st_ino) == file:
            found.add(number)
    return found


# A library with the WAL-reset bug.


def check_library(version: str | int) -> None:
    """Raise UnsupportedStore for a SQLite that can corrupt the file; `3.51.3` or 3051003."""
    parts = tuple(map(int, version.split("."))) if isinstance(version, str) else _parts(version)
    if parts[:3] >= (3, 51, 3) or (3, 50, 7) <= parts < (3, 51) or (3, 44, 6) <= parts < (3, 45):
        return
    reason = "has the WAL-reset bug, by which two connections that write and checkpoint at once can corrupt the file"
    if parts < (3, 7):
        reason = "has no write-ahead log"
    raise UnsupportedStore(
        f"SQLite {'.'.join(map(str, parts))} {reason}. Install apsw 3.51.3.0 or newer, whose wheel brings its own SQLite."
    )


def _parts(number: int) -> tuple[int, ...]:
    return number // 1_000_000, number // 1_000 % 1_000, number % 1_000


# A file system on which locks or shared memory do not work between machines.

# As the kernel calls them, with or without `fuse.` before it.
_NAMES = """
    9p afs beegfs blobfuse blobfuse2 ceph ceph-fuse cifs coda davfs davfs2 gcsfuse gfs2 glusterfs goofys gpfs juicefs lustre
    mfs mountpoint-s3 ncpfs nfs nfs4 ocfs2 orangefs prl_fs pvfs2 rclone s3fs smb3 smbfs smbnetfs sshfs vboxsf vmhgfs-fuse
"""
_SHARED = frozenset(_NAMES.split())


def check_file_system(path: str | os.PathLike[str]) -> None:
    """Raise UnsupportedStore when the file is, or would be, on a network file system. Linux only; others do not say."""
    try:
        mountinfo = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return
    kind = file_system(mountinfo, os.path.realpath(path))
    if kind is not None and kind.lower().removeprefix("fuse.") in _SHARED:
        raise UnsupportedStore(
            f"{os.fspath(path)!r} is on a {kind} file system. SQLite needs locks and shared memory that work for all who "
            "have the file open, and file systems shared between machines do not give them; the file could be corrupted. "
            "Put it on a local disk, or use PostgreSQL."
        )


def file_system(mountinfo: str, path: str) -> str | None:
    """The type of the file system that an absolute path is on, by the text of /proc/self/mountinfo."""
    best, kind = "", None
    for line in mountinfo.split("\n"):
        mount, _, source = line.partition(" - ")
        fields = mount.split(" ")
        if len(fields) < 5 or not source:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        covers = path == point or path.startswith(point.rstrip("/") + "/")
        if covers and len(point) >= len(best):  # of two at one place, the later one lies on top
            best, kind = point, source.split(" ")[0]
    return kind
