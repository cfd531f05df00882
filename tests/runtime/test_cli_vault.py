"""`holdfast vault`: keys, what each has sealed, and rotation, on each store."""

from __future__ import annotations

import sys

import pytest
from cli_kit import run_process, write_program

from holdfast.vault import Keyring, Place, Vault
from holdfast.vault.keyring import new_key

OLD, NEW = new_key("2025"), new_key("2026")
PROGRAM = '''"""A shop."""

from holdfast import Holdfast

hf = Holdfast()
hf.vault.column("cli_accounts", "token")
'''


@pytest.fixture
def sealed(shop, on_store, monkeypatch, tmp_path):
    write_program(tmp_path, PROGRAM)
    vault = Vault(Keyring.read(OLD))

    async def make(store):
        async with store.transaction() as tx:
            await tx.execute("CREATE TABLE cli_accounts (id INTEGER PRIMARY KEY, token TEXT)")
            for number in (1, 2):
                text = vault.seal("x", Place("cli_accounts", "token", str(number)))
                await tx.execute("INSERT INTO cli_accounts VALUES ($1, $2)", number, text)

    async def drop(store):
        async with store.transaction() as tx:
            await tx.execute("DROP TABLE cli_accounts")

    on_store(make)
    monkeypatch.setenv("HOLDFAST_KEYS", f"{NEW},{OLD}")
    yield shop
    on_store(drop)


def test_a_new_key_is_one_that_can_be_used(line):
    assert line("vault", "new-key", "a") == 0
    assert Keyring.read(line.out).ids == ("a",)
    found = line.json("vault", "new-key", "b")
    assert Keyring.read(found["line"]).current == "b" == found["id"]
    assert line("vault", "new-key", "no good") == 2
    assert "no good" in line.err


def test_rows_are_counted_by_their_key_and_rotated(sealed, kept, tmp_path):
    assert sealed("vault") == 0
    assert "cli_accounts.token  2025     2  to be rotated" in sealed.out
    assert sealed.json("vault") == {"current": "2026", "columns": {"cli_accounts.token": {"2025": 2}}}
    assert sealed("vault", "rotate") == 0
    assert sealed("vault", "rotate") == 1, "one at a time"
    assert "rotates already" in sealed.err
    environment = {"HOLDFAST_URL": kept, "HOLDFAST_KEYS": f"{NEW},{OLD}"}
    worker = run_process("worker", "shop:hf", "--burst", folder=tmp_path, environment=environment)
    assert worker.returncode == 0, worker.stderr
    assert sealed.json("vault")["columns"] == {"cli_accounts.token": {"2026": 2}}


def test_a_program_without_sealed_columns_is_told_how(shop):
    assert shop("vault") == 2
    assert "hf.vault.column()" in shop.err


def test_without_keys_it_says_how(sealed, monkeypatch):
    monkeypatch.delenv("HOLDFAST_KEYS")
    assert sealed("vault") == 2
    assert "new-key" in sealed.err


def test_the_doctor_looks_at_the_keys(line, sealed, monkeypatch):
    def given(keys):
        monkeypatch.setenv("HOLDFAST_KEYS", keys)
        sys.modules.pop("shop")  # another start of the program

    line("doctor")
    assert "2 values are under another key than '2026'" in line.out
    given(OLD)
    line("doctor")
    assert "all values are under the key '2025'" in line.out
    given(NEW)
    assert line("doctor") == 1
    assert "2 values were sealed by no key that is here" in line.out
    for wrong, why in (("2026:AAAA", "must be 32 bytes"), ("file:/nowhere/keys", "cannot be read")):
        given(wrong)
        assert line("doctor") == 1
        assert why in line.out


def test_a_worker_with_keys_that_are_none_does_not_start(line, sealed, monkeypatch):
    monkeypatch.setenv("HOLDFAST_KEYS", "2026:" + "c2VjcmV0" * 5)
    assert line("worker", "shop:hf", "--burst") == 2
    assert "2026" in line.err
    assert "c2VjcmV0" not in line.err
