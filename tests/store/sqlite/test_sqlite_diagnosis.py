"""What `doctor` finds about a SQLite library, disk and file."""

import os
from pathlib import Path

import apsw
import pytest

from holdfast.store.findings import Level
from holdfast.store.sqlite import diagnosis, refusals
from holdfast.store.sqlite.store import SqliteStore


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore(tmp_path / "jobs.db")
    await store.open()
    await store.close()
    return store


async def levels(store):
    return {finding.check: finding.level for finding in await store.diagnosis.examine()}


async def test_all_is_well_with_a_new_file(store):
    assert set((await levels(store)).values()) == {Level.OK}


async def test_a_file_that_is_not_there_is_not_made(tmp_path):
    store = SqliteStore(tmp_path / "none.db")
    findings = await store.diagnosis.examine()
    assert findings[-1].level is Level.BAD
    assert "none.db" in findings[-1].found
    assert not list(tmp_path.iterdir())


async def test_a_library_that_loses_data_is_bad(store, monkeypatch):
    monkeypatch.setattr(apsw, "sqlitelibversion", lambda: "3.50.1")
    assert (await levels(store))["sqlite"] is Level.BAD


async def test_a_network_file_system_is_bad(store, monkeypatch):
    monkeypatch.setattr(refusals, "file_system", lambda mounts, path: "nfs4")
    assert (await levels(store))["file system"] is Level.BAD


async def test_what_everybody_may_change_is_worth_a_warning(store):
    file = Path(store.path)
    file.chmod(0o666)
    file.parent.chmod(0o777)
    found = await levels(store)
    assert (found["file"], found["folder"]) == (Level.WARN, Level.WARN)
    file.parent.chmod(0o1777)  # as /tmp: nobody can replace what is another's
    assert (await levels(store))["folder"] is Level.OK


async def test_what_this_user_cannot_write_is_bad(store, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everything
    found = await levels(store)
    assert (found["file"], found["folder"]) == (Level.BAD, Level.BAD)


async def test_a_large_write_ahead_log_and_a_full_disk(store, monkeypatch):
    monkeypatch.setattr(diagnosis, "WAL_TOO_LARGE", -1)
    monkeypatch.setattr(diagnosis, "DISK_LOW", 2**62)
    found = await levels(store)
    assert (found["wal"], found["disk"]) == (Level.WARN, Level.WARN)
    monkeypatch.setattr(diagnosis, "DISK_TOO_LOW", 2**62)
    assert (await levels(store))["disk"] is Level.BAD


async def test_tables_that_lack_something_are_not_migrated_by_looking(tmp_path):
    path = tmp_path / "old.db"
    apsw.Connection(str(path)).execute("CREATE TABLE other (id INTEGER)")
    found = (await SqliteStore(path).diagnosis.examine())[-1]
    assert (found.check, found.level) == ("tables", Level.WARN)
    assert "0001_jobs" in found.found


async def test_newer_tables_and_what_is_no_database(store, tmp_path):
    with apsw.Connection(store.path) as connection:
        connection.execute("INSERT INTO holdfast_migration VALUES (9999, '9999_later', 'x', 0)")
    assert (await levels(store))["tables"] is Level.BAD
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"no database at all " * 1000)
    assert (await levels(SqliteStore(junk)))["tables"] is Level.BAD
