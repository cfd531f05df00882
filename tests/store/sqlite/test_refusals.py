"""What a SQLite store refuses: real libraries on a real file, and the text of other machines' mounts."""

import sqlite3
from pathlib import Path

import aiosqlite
import apsw
import pytest
import sqlalchemy
import sqlalchemy.ext.asyncio
import sqlalchemy.orm

from holdfast.kernel.errors import UnsupportedStore, WrongConnection
from holdfast.sqlalchemy.sqlite import url_of_file
from holdfast.store.sqlite import refusals
from holdfast.store.sqlite.refusals import file_system, foreign_descriptor, our_descriptors, refuse

# --- a transaction that is not ours ---


def refusal(tx: object) -> str:
    with pytest.raises(WrongConnection) as caught:
        refuse(tx)
    text = str(caught.value)
    assert "hf.transaction()" in text  # what to do instead
    return text


def test_the_interpreters_sqlite3_is_another_library():
    connection = sqlite3.connect(":memory:")
    cursor = connection.cursor()
    try:
        for tx in (connection, cursor):
            text = refusal(tx)
            assert "sqlite3." in text
            assert "One SQLite library per process and file" in text
    finally:
        connection.close()


async def test_so_is_aiosqlite():
    async with aiosqlite.connect(":memory:") as connection:
        assert "aiosqlite" in (text := refusal(connection))
        assert "One SQLite library per process and file" in text


def test_so_is_sqlalchemy():
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection, sqlalchemy.orm.Session(engine) as session:
        for tx in (connection, session, engine):
            assert "One SQLite library per process and file" in refusal(tx)
    engine.dispose()


async def test_and_async_sqlalchemy():
    engine = sqlalchemy.ext.asyncio.create_async_engine("sqlite+aiosqlite://")
    async with engine.connect() as connection, sqlalchemy.ext.asyncio.AsyncSession(engine) as session:
        for tx in (connection, session):
            assert "One SQLite library per process and file" in refusal(tx)
    await engine.dispose()


def test_sqlalchemy_on_another_database_is_told_apart():
    engine = sqlalchemy.create_engine("postgresql+psycopg://nobody@localhost/nothing")
    assert "leads to postgresql" in refusal(sqlalchemy.orm.Session(engine))


def test_a_session_without_a_bind_is_refused_too():
    assert "sqlalchemy" in refusal(sqlalchemy.orm.Session())


def test_apsw_is_another_transaction():
    connection = apsw.Connection(":memory:")
    assert "another transaction" in refusal(connection)
    connection.close()


@pytest.mark.parametrize("tx", ["sqlite:///a.db", 7, object()])
def test_anything_else_is_named(tx):
    assert f"{type(tx).__module__}.{type(tx).__qualname__}" in refusal(tx)


# --- another library on the file ---


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "jobs.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    return path


def ours(path: Path) -> apsw.Connection:
    with our_descriptors(path):
        connection = apsw.Connection(str(path))
    connection.execute("SELECT * FROM t").fetchall()
    return connection


def test_nobody_has_it_open(path):
    assert foreign_descriptor(path) is None


def test_a_file_that_is_not_there_yet(tmp_path):
    assert foreign_descriptor(tmp_path / "new.db") is None


def test_sqlite3_has_it_open(path):
    connection = sqlite3.connect(path)
    text = foreign_descriptor(path)
    connection.close()
    assert text is not None
    assert "jobs.db" in text
    assert "sqlite3 is loaded" in text
    assert foreign_descriptor(path) is None


def test_it_is_found_by_another_name_of_the_file(path, tmp_path):
    connection = sqlite3.connect(path)
    (tmp_path / "link.db").symlink_to(path)
    assert foreign_descriptor(tmp_path / "link.db") is not None
    connection.close()


def test_our_own_connections_are_not_foreign(path):
    first, second = ours(path), ours(path)
    assert foreign_descriptor(path) is None
    second.close()  # SQLite keeps its descriptor while the first has locks on the file
    assert foreign_descriptor(path) is None
    first.close()
    assert foreign_descriptor(path) is None


def test_a_foreign_one_among_our_own(path):
    own = ours(path)
    foreign = sqlite3.connect(path)
    later = ours(path)
    try:
        assert foreign_descriptor(path) is not None
    finally:
        foreign.close()
    assert foreign_descriptor(path) is None
    own.close()
    later.close()


def test_a_new_file_is_ours(tmp_path):
    path = tmp_path / "new.db"
    with our_descriptors(path):
        connection = apsw.Connection(str(path))
        connection.execute("CREATE TABLE t (x)")
    assert foreign_descriptor(path) is None
    connection.close()


def test_a_number_that_was_ours_is_not_ours_for_ever(path):
    own = ours(path)
    own.close()
    assert foreign_descriptor(path) is None
    foreign = sqlite3.connect(path)  # gets the number that was ours
    assert foreign_descriptor(path) is not None
    foreign.close()


# --- the library ---


@pytest.mark.parametrize("version", ["3.44.6", "3.44.9", "3.50.7", "3.50.99", "3.51.3", "3.52.0", "4.0.0"])
def test_sound_libraries(version):
    refusals.check_library(version)
    major, minor, patch = map(int, version.split("."))
    refusals.check_library(major * 1_000_000 + minor * 1_000 + patch)


@pytest.mark.parametrize(
    "version", ["3.7.0", "3.40.1", "3.44.5", "3.45.0", "3.49.2", "3.50.6", "3.51.0", "3.51.2"]
)
def test_libraries_with_the_wal_reset_bug(version):
    major, minor, patch = map(int, version.split("."))
    for form in (version, major * 1_000_000 + minor * 1_000 + patch):
        with pytest.raises(UnsupportedStore, match=rf"SQLite {version} has the WAL-reset bug.*Install apsw"):
            refusals.check_library(form)


def test_a_library_without_wal():
    with pytest.raises(UnsupportedStore, match="no write-ahead log"):
        refusals.check_library(3006023)


def test_the_library_that_is_installed():
    refusals.check_library(apsw.sqlitelibversion())


# --- the file system ---

MOUNTS = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 27 0:50 / /srv rw,relatime shared:7 master:2 - nfs4 filer:/export rw,vers=4.2
41 40 8:1 /sub /srv/local rw,noatime - xfs /dev/sda1 rw
42 27 0:51 / /mnt/c rw - 9p drvfs rw,trans=fd
43 27 0:52 / /mnt/two\040words rw - cifs //host/share rw
44 27 0:53 / /home/ada/far rw,nosuid - fuse.sshfs ada@host: rw
45 27 8:2 / /over rw - ext4 /dev/sdb rw
46 27 0:54 / /over rw - nfs filer:/over rw
a line that is no mount
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib/jobs.db", "ext4"),
        ("/srv/jobs.db", "nfs4"),
        ("/srv", "nfs4"),
        ("/srvother/jobs.db", "ext4"),
        ("/srv/local/jobs.db", "xfs"),
        ("/mnt/c/jobs.db", "9p"),
        ("/mnt/two words/jobs.db", "cifs"),
        ("/home/ada/far/jobs.db", "fuse.sshfs"),
        ("/over/jobs.db", "nfs"),
    ],
)
def test_the_longest_mount_that_covers_the_path(path, kind):
    assert file_system(MOUNTS, path) == kind


def test_no_mounts_no_answer():
    assert file_system("", "/jobs.db") is None


@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "fuse.glusterfs",
        "fuse.sshfs",
        "fuse.JuiceFS",
    ],
)
def test_network_file_systems_are_refused(kind, monkeypatch, tmp_path):
    monkeypatch.setattr(refusals, "file_system", lambda mountinfo, path: kind)
    with pytest.raises(UnsupportedStore, match=f"jobs.db' is on a {kind} file system.*local disk"):
        refusals.check_file_system(tmp_path / "jobs.db")


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", None])
def test_local_ones_are_not(kind, monkeypatch, tmp_path):
    monkeypatch.setattr(refusals, "file_system", lambda mountinfo, path: kind)
    refusals.check_file_system(tmp_path / "jobs.db")


def test_an_engine_of_our_own_dialect_is_no_transaction(tmp_path):
    engine = sqlalchemy.create_engine(url_of_file(str(tmp_path / "a.db")))
    assert "makes connections and has no transaction" in refusal(engine)
    engine.dispose()
