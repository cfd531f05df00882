"""What could break a promise of a SQLite store: its library, its disk, its file, and what waits in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw

from holdfast.kernel.errors import HoldfastError, SchemaError, UnsupportedStore
from holdfast.store.edge import checked
from holdfast.store.findings import Finding, bad, judge, ok, warn
from holdfast.store.sqlite import refusals, schema
from holdfast.store.sqlite.backlog import backlog
from holdfast.store.sqlite.connection import Db
from holdfast.store.sqlite.reader import Reader

_MIB = 1024 * 1024
WAL_TOO_LARGE = 256 * _MIB  # a checkpoint cuts it to 64 MiB when nobody reads
DISK_LOW, DISK_TOO_LOW = 500 * _MIB, 50 * _MIB


@checked
class Diagnosis:
    def __init__(self, path: str) -> None:
        self._path = path

    async def examine(self, *, processes: int = 1) -> tuple[Finding, ...]:  # noqa: ARG002  a file has room for any number
        findings = [_library(), _file_system(self._path)]
        if not Path(self._path).exists():  # noqa: ASYNC240  it asks no disk for long
            missing = f"There is no file {self._path!r}."
            return (*findings, bad("file", missing, "Check its name, or make it: holdfast migrate."))
        findings += _file(Path(self._path))
        if (foreign := refusals.foreign_descriptor(self._path)) is not None:
            findings.append(bad("library", foreign, "The store refuses to write, and to open, until then."))
        return (*findings, *await self._tables())

    async def _tables(self) -> list[Finding]:
        """Read with a connection of our own, so that nothing is migrated by looking."""
        reader = Reader(partial(Db, self._path, reading=True))
        try:
            await reader.start()
            try:
                missing = await reader.run(schema.find_pending)
                if missing:
                    return [_missing([migration.name for migration in missing])]
                waiting = await reader.run(backlog)
            finally:
                await reader.stop()
        except SchemaError as error:
            return [bad("tables", str(error), "Use the Holdfast that fits.")]
        except HoldfastError as error:
            return [bad("tables", f"The file cannot be read: {error}", "Mend that first.")]
        return [ok("tables", "All migrations are applied."), *judge(waiting)]


# --- the library and the disk ---


def _library() -> Finding:
    version = apsw.sqlitelibversion()
    try:
        refusals.check_library(version)
    except UnsupportedStore as error:
        return bad("sqlite", str(error), "The store refuses to open until then.")
    return ok("sqlite", f"SQLite {version}, through APSW.")


def _file_system(path: str) -> Finding:
    try:
        refusals.check_file_system(path)
    except UnsupportedStore as error:
        return bad("file system", str(error), "The store refuses to open until then.")
    return ok("file system", "Not one that is known to be shared between machines.")


def _file(path: Path) -> Iterator[Finding]:
    yield _permissions(path)
    yield _folder(path.resolve().parent)
    yield _wal(path)
    yield _disk(path)


def _permissions(path: Path) -> Finding:
    mode = path.stat().st_mode
    shown = f"{os.fspath(path)!r} has the mode {stat.S_IMODE(mode):04o}"
    if not os.access(path, os.R_OK | os.W_OK):
        return bad(
            "file",
            f"{shown}, and this user cannot write it.",
            "Change its owner, or the user of the workers.",
        )
    if mode & stat.S_IWOTH:
        return warn("file", f"{shown}: everybody on this machine may change it.", f"chmod o-w {path}")
    return ok("file", f"{shown}.")


def _folder(folder: Path) -> Finding:
    """SQLite makes its WAL beside the file."""
    mode = folder.stat().st_mode
    shown = f"{os.fspath(folder)!r} has the mode {stat.S_IMODE(mode):04o}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return bad(
            "folder",
            f"{shown}, and this user cannot make files there.",
            "SQLite must: change its owner or mode.",
        )
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return warn(
            "folder", f"{shown}: everybody on this machine may replace the file.", f"chmod o-w {folder}"
        )
    return ok("folder", f"{shown}.")


def _wal(path: Path) -> Finding:
    wal = path.with_name(f"{path.name}-wal")
    size = wal.stat().st_size if wal.exists() else 0
    if size <= WAL_TOO_LARGE:
        return ok("wal", f"{size / _MIB:.1f} MiB.")
    return warn(
        "wal",
        f"The write-ahead log has {size / _MIB:,.0f} MiB, so it is not cut back.",
        "Look for a process that keeps a reading transaction open, and end it.",
    )


def _disk(path: Path) -> Finding:
    free = os.statvfs(path)
    left = free.f_bavail * free.f_frsize
    found = f"{left / _MIB:,.0f} MiB are free."
    if left > DISK_LOW:
        return ok("disk", found)
    return (warn if left > DISK_TOO_LOW else bad)(
        "disk", found, "Free some: nothing can be stored when it is full."
    )


# --- the tables ---


def _missing(names: list[str]) -> Finding:
    found = f"The tables lack the migrations {', '.join(names)}."
    return warn("tables", found, "They are applied when a program opens the store, or by holdfast migrate.")
