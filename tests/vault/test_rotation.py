"""Rotation brings declared columns under the current key while others write, on both stores; sealed columns of models."""

from __future__ import annotations

import asyncio
import uuid

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from holdfast import Holdfast
from holdfast.errors import UsageError
from holdfast.runtime import vaulting
from holdfast.vault import Keyring, Place, SealBroken, SecretValue
from holdfast.vault.columns import SealedAttribute, SealedText
from holdfast.vault.keyring import new_key

OLD, NEW = new_key("2025"), new_key("2026")
BEFORE, AFTER = Keyring.read(OLD), Keyring.read(f"{NEW},{OLD}")
pytestmark = pytest.mark.usefixtures("accounts")


@pytest.fixture
async def accounts(hf):
    hf.vault.column("accounts", "token", tenant="owner")
    hf.vault._ring = BEFORE
    async with hf.transaction() as tx:
        await tx.execute("CREATE TABLE accounts (id INTEGER PRIMARY KEY, owner TEXT, token TEXT)")
    yield
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE accounts")


async def add(hf, count, first=1):
    async with hf.transaction() as tx:
        for number in range(first, first + count):
            sealed = hf.vault.seal(f"secret {number}", place(number))
            await tx.execute("INSERT INTO accounts VALUES ($1, 'ada', $2)", number, sealed)


def place(number):
    return Place("accounts", "token", str(number), "ada")


async def opened(hf):
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT id, token FROM accounts ORDER BY id")
    return {number: hf.vault.open(sealed, place(number)).reveal() for number, sealed in rows}


async def test_rotation_brings_all_rows_under_the_new_key(hf):
    await add(hf, 450)
    hf.vault._ring = AFTER
    assert await hf.vault.counts() == {"accounts.token": {"2025": 450}}
    handle = await hf.vault.rotate()
    assert not (await hf.vault.rotate()).created, "one at a time"
    async with hf.worker():
        assert await handle.result(timeout=30) == 450
    assert await hf.vault.counts() == {"accounts.token": {"2026": 450}}
    assert await opened(hf) == {number: f"secret {number}" for number in range(1, 451)}
    again = await hf.vault.rotate()
    async with hf.worker():
        assert await again.result(timeout=30) == 0


async def test_four_writers_lose_nothing_while_it_rotates(hf):
    await add(hf, 300)
    hf.vault._ring = AFTER
    written, done = {number: f"secret {number}" for number in range(1, 301)}, asyncio.Event()

    async def write(which):
        turn = 0
        while not done.is_set():
            number, turn = 1 + (turn * 4 + which) % 300, turn + 1
            text = f"by {which}, {turn}"
            async with hf.transaction() as tx:
                await tx.execute(
                    "UPDATE accounts SET token = $1 WHERE id = $2", hf.vault.seal(text, place(number)), number
                )
            written[number] = text

    async with hf.worker():
        writers = [asyncio.create_task(write(which)) for which in range(4)]
        await (await hf.vault.rotate()).result(timeout=30)
        done.set()
        await asyncio.gather(*writers)
    assert await opened(hf) == written
    assert await hf.vault.counts() == {"accounts.token": {"2026": 300}}


async def test_rows_that_do_not_open_are_named_and_the_rest_is_done(hf):
    await add(hf, 3)
    async with hf.transaction() as tx:
        await tx.execute("UPDATE accounts SET token = (SELECT token FROM accounts WHERE id = 1) WHERE id = 2")
        await tx.execute("INSERT INTO accounts VALUES (4, 'ada', 'plain'), (5, 'ada', NULL)")
    hf.vault._ring = AFTER
    handle = await hf.vault.rotate()
    async with hf.worker():
        with pytest.raises(Exception, match=r"accounts\.token of 2, accounts\.token of 4") as raised:
            await handle.result(timeout=30)
    assert "plain" not in str(raised.value).replace("accounts", "")
    assert await hf.vault.counts() == {"accounts.token": {"2026": 2, "2025": 1, "": 1}}


async def test_rows_are_found_where_the_program_has_put_them(hf):
    """SQLAlchemy keeps a UUID on SQLite as 32 letters, and says it with dashes; a row without a tenant has none."""
    dashed = [str(uuid.UUID(int=number)) for number in (7, 8)]
    stored = [each.replace("-", "") for each in dashed] if "Sqlite" in type(hf.store).__name__ else dashed
    kind = "TEXT" if stored != dashed else "UUID"
    md5 = "0123456789abcdef0123456789abcdef"  # a name that only looks like one
    hf.vault.column("by_uuid", "token", tenant="owner")
    async with hf.transaction() as tx:
        await tx.execute(f"CREATE TABLE by_uuid (id {kind} PRIMARY KEY, owner TEXT, token TEXT)")
        for key, row, owner in [(stored[0], dashed[0], None), (stored[1], dashed[1], md5)]:
            sealed = hf.vault.seal("secret", Place("by_uuid", "token", row, owner or ""))
            await tx.execute("INSERT INTO by_uuid VALUES ($1, $2, $3)", key, owner, sealed)
    hf.vault._ring = AFTER
    async with hf.worker():
        assert await (await hf.vault.rotate()).result(timeout=30) == 2
    async with hf.transaction() as tx:
        rows = await tx.fetch("SELECT token FROM by_uuid ORDER BY id")
        await tx.execute("DROP TABLE by_uuid")
    places = [Place("by_uuid", "token", dashed[0]), Place("by_uuid", "token", dashed[1], md5)]
    assert [hf.vault.open(row[0], each).reveal() for row, each in zip(rows, places, strict=True)] == [
        "secret"
    ] * 2


async def test_a_worker_with_another_key_in_front_does_not_rotate(hf, monkeypatch):
    """It was not started again since the new key was put behind the old one. What others have sealed stays under the new one."""
    monkeypatch.setattr(vaulting, "_AGAIN", 0.2)
    await add(hf, 3)
    hf.vault._ring = AFTER
    await add(hf, 2, first=4)
    handle = await hf.vault.rotate()
    hf.vault._ring = Keyring.read(f"{OLD},{NEW}")
    async with hf.worker():
        async with asyncio.timeout(20):
            while not (record := await hf.jobs.get(handle.id)).errors:
                await asyncio.sleep(0.05)
        assert "the current one is '2025'" in record.errors[0].error
        assert await hf.vault.counts() == {"accounts.token": {"2025": 3, "2026": 2}}
        hf.vault._ring = AFTER
        assert await handle.result(timeout=30) == 3
    assert await hf.vault.counts() == {"accounts.token": {"2026": 5}}


async def test_a_rotation_needs_a_declared_column(hf):
    other = Holdfast("sqlite:///unused.db", keys=AFTER)
    with pytest.raises(UsageError, match=r"hf\.vault\.column"):
        await other.vault.rotate()
    with pytest.raises(UsageError, match="declared twice"):
        hf.vault.column("accounts", "token", row="other")
    for wrong in ("a b", 'a"; DROP TABLE x', "", "a.b.c"):
        with pytest.raises(UsageError, match="plain name"):
            hf.vault.column(wrong, "token")


# --- models ---


class Base(DeclarativeBase):
    pass


HOLDER = Holdfast("sqlite:///unused.db", keys=AFTER)


class Account(Base):
    __tablename__ = "accounts"
    id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str]
    _token: Mapped[str | None] = mapped_column("token", SealedText)
    token = SealedAttribute(HOLDER.vault, "_token", tenant="owner")


async def test_a_sealed_attribute_seals_and_opens(hf):
    async with hf.session() as session:
        session.add(account := Account(id=1, owner="ada"))
        account.token = "first"
        await session.commit()
    async with hf.session() as session:
        account = await session.get(Account, 1)
        assert account.token == SecretValue("first")
        account.token = None
        assert account.token is None
        account.token = SecretValue("second")
        await session.commit()
    async with hf.transaction() as tx:
        [(sealed,)] = await tx.fetch("SELECT token FROM accounts")
    assert HOLDER.vault.open(sealed, place(1)).reveal() == "second"


async def test_a_value_that_was_moved_to_another_row_does_not_open(hf):
    async with hf.session() as session:
        for number in (1, 2):
            session.add(account := Account(id=number, owner="ada"))
            account.token = f"of {number}"
        await session.flush()
        await session.execute(
            sa.text("UPDATE accounts SET token = (SELECT token FROM accounts WHERE id = 1)")
        )
        await session.commit()
    async with hf.session() as session:
        assert (await session.get(Account, 1)).token.reveal() == "of 1"
        second = await session.get(Account, 2)
        with pytest.raises(SealBroken):
            second.token.reveal()


async def test_a_secret_cannot_be_stored_as_it_is(hf):
    async with hf.session() as session:
        session.add(Account(id=1, owner="ada", _token="plain text"))
        with pytest.raises(sa.exc.StatementError, match="is not sealed") as raised:
            await session.flush()
        assert "plain text" not in str(raised.value.orig)


async def test_the_rows_key_must_be_known_first(hf):
    with pytest.raises(UsageError, match="flush the session"):
        Account(owner="ada").token = "x"
