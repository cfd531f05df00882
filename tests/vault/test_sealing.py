"""What the vault seals opens in its place, and nowhere else; keys are read strictly; secrets never print."""

from __future__ import annotations

import base64
import copy
import json
import logging
import os
import pickle

import msgspec
import pytest

from holdfast.kernel import codec
from holdfast.kernel.errors import HoldfastError, PayloadError, UsageError
from holdfast.vault import Keyring, Place, SealBroken, SecretValue, UnknownKey, Vault
from holdfast.vault.keyring import new_key
from holdfast.vault.vault import is_sealed

PLACE = Place("accounts", "refresh_token", "7", "acme")
SECRET = "rt-4f9a-üñí"


@pytest.fixture
def vault():
    return Vault(Keyring.read(new_key("k1")))


@pytest.mark.parametrize("text", ["", "a", SECRET, "\x00", "\ud800", "x" * 1_000_000])
def test_what_is_sealed_opens_in_its_place(vault, text):
    assert vault.open(vault.seal(text, PLACE), PLACE).reveal() == text


def test_a_secret_value_is_sealed_as_its_text(vault):
    assert vault.open(vault.seal(SecretValue(SECRET), PLACE), PLACE) == SecretValue(SECRET)


@pytest.mark.parametrize(
    "other",
    [
        Place("accounts", "refresh_token", "8", "acme"),
        Place("accounts", "refresh_token", "7", "other"),
        Place("accounts", "refresh_token", "7"),
        Place("accounts", "access_token", "7", "acme"),
        Place("users", "refresh_token", "7", "acme"),
        Place("accounts", "refresh_token", "7acme"),
        Place("accounts", 'refresh_token", "7', "acme", "x"),
    ],
)
def test_what_is_moved_does_not_open(vault, other):
    sealed = vault.seal(SECRET, PLACE)
    with pytest.raises(SealBroken) as raised:
        vault.open(sealed, other)
    assert SECRET not in str(raised.value)
    assert sealed not in str(raised.value)


def test_every_changed_character_is_noticed(vault):
    sealed = vault.seal(SECRET, PLACE)
    for position in range(len(sealed)):
        changed = sealed[:position] + ("A" if sealed[position] != "A" else "B") + sealed[position + 1 :]
        with pytest.raises((SealBroken, UnknownKey)):
            vault.open(changed, PLACE)


@pytest.mark.parametrize(
    "text", ["", "plain", "hfv1", "hfv1:k1", "hfv1:k1:", "hfv1:k1:AAAA", "hfv1:k1:ü", "hfv2:k1:AAAA", None, 7]
)
def test_what_was_never_sealed_is_refused(vault, text):
    with pytest.raises(SealBroken):
        vault.open(text, PLACE)


def test_base64_has_one_form(vault):
    """Bits behind the end of the value, newlines and the like are not passed over."""
    sealed = vault.seal(SECRET, PLACE)
    for changed in (sealed + "\n", sealed + "=", sealed.rstrip("="), " " + sealed, sealed + "AAAA"):
        if changed != sealed:
            with pytest.raises(SealBroken):
                vault.open(changed, PLACE)


def test_the_key_id_is_bound(vault):
    """A value under one id does not open under another, though the key is the same."""
    key = base64.b64decode(new_key("a").partition(":")[2])
    one, two = Vault(Keyring({"a": key})), Vault(Keyring({"b": key, "a": key}))
    sealed = one.seal(SECRET, PLACE)
    with pytest.raises(SealBroken):
        two.open(sealed.replace("hfv1:a:", "hfv1:b:"), PLACE)
    assert two.open(sealed, PLACE).reveal() == SECRET


def test_an_old_key_opens_and_the_current_one_seals():
    old = new_key("2025")
    before = Vault(Keyring.read(old))
    after = Vault(Keyring.read(f"{new_key('2026')},{old}"))
    sealed = before.seal(SECRET, PLACE)
    assert not after.is_current(sealed)
    fresh = after.reseal(sealed, PLACE)
    assert after.is_current(fresh)
    assert after.open(fresh, PLACE).reveal() == SECRET
    with pytest.raises(UnknownKey, match="'2026'"):
        before.open(fresh, PLACE)


def test_nonces_and_salts_differ_a_million_times(monkeypatch):
    """The cipher is left out: what is counted is what it would be given."""
    drawn = []

    class Nothing:
        def encrypt(self, nonce, plain, place):
            drawn.append(nonce)
            return b"0" * 16

    salts = []
    monkeypatch.setattr("holdfast.vault.vault._cipher", lambda key, salt: salts.append(salt) or Nothing())
    vault = Vault(Keyring.read(new_key("k1")))
    for _ in range(1_000_000):
        vault.seal("x", PLACE)
    assert len(set(drawn)) == len(set(salts)) == 1_000_000
    assert {len(each) for each in drawn} == {12}
    assert {len(each) for each in salts} == {16}


# --- secrets that never print ---


def test_a_secret_never_prints(caplog):
    secret = SecretValue(SECRET)
    for shown in (
        str(secret),
        repr(secret),
        f"{secret}",
        f"{secret:>20}",
        str([secret]),
        repr([secret]),
        repr({"a": secret}),
    ):
        assert SECRET not in shown
    with caplog.at_level(logging.INFO):
        logging.getLogger("any").info("here: %s %r", secret, secret)
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "leak", [pickle.dumps, copy.copy, copy.deepcopy, json.dumps, msgspec.json.encode, codec.encode, hash]
)
def test_a_secret_goes_into_nothing(leak):
    with pytest.raises((HoldfastError, TypeError)) as raised:
        leak(SecretValue(SECRET))
    assert SECRET not in str(raised.value)


def test_a_secret_is_no_argument_of_a_job():
    with pytest.raises(PayloadError):
        codec.encode({"token": SecretValue(SECRET)})


def test_secrets_compare_by_their_text():
    assert SecretValue("a") == SecretValue("a")
    assert SecretValue("a") != SecretValue("b")
    assert SecretValue("a") != "a"
    assert SecretValue("a")
    assert not SecretValue("")


@pytest.mark.parametrize("value", [b"bytes", None, 7, ["a"]])
def test_only_text_is_sealed(vault, value):
    with pytest.raises(UsageError, match="text"):
        vault.seal(value, PLACE)
    with pytest.raises(UsageError, match="text"):
        SecretValue(value)
    assert is_sealed(vault.seal("x", PLACE))


def test_a_file_is_no_secret(vault):
    with pytest.raises(UsageError, match="1,000,000"):
        vault.seal("x" * 1_000_001, PLACE)


# --- places ---


@pytest.mark.parametrize(
    "parts", [("", "c", "1"), ("t", "", "1"), ("t", "c", ""), ("t", "c", 1), ("t", "c", None)]
)
def test_a_place_names_a_row(parts):
    with pytest.raises(UsageError, match="Place"):
        Place(*parts)


# --- keys ---


def encoded(key):
    return base64.b64encode(key).decode()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("nocolon", "no id"),
        (":" + encoded(bytes(range(100, 132))), "id"),
        ("a b:" + encoded(bytes(range(100, 132))), "id"),
        ("k:not base64!", "base64"),
        ("k:" + encoded(bytes(range(16))), "16 bytes"),
        ("k:" + encoded(bytes(32)), "not random"),
        ("k:" + encoded(b"0123456789abcdef" * 2), "not random"),
        ("k:" + encoded(b"correct horse battery staple 123"), "not random"),
        (f"k:{encoded(bytes(range(100, 132)))},k:{encoded(bytes(range(100, 132)))}", "twice"),
        ("file:/nowhere/keys", "cannot be read"),
    ],
)
def test_keys_that_protect_nothing_are_refused(text, why):
    with pytest.raises(UsageError, match=why):
        Keyring.read(text)


def test_no_error_shows_a_key():
    key = encoded(os.urandom(16))
    with pytest.raises(UsageError) as raised:
        Keyring.read(f"k:{key}")
    assert key not in str(raised.value)
    for wrong in (key, f"{key}:k", f"{key}:"):  # the id was forgotten, or stands behind
        with pytest.raises(UsageError) as raised:
            Keyring.read(wrong)
        assert key not in str(raised.value)


def test_a_keyring_shows_ids_alone():
    line = new_key("k1")
    assert repr(Vault(Keyring.read(line))) == "Vault(Keyring(k1; current: k1))"
    assert line.partition(":")[2] not in repr(vars(Keyring.read(line)).keys())


def test_keys_come_from_a_file_that_others_cannot_read(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"# the current one first\n{new_key('new')}\n\n{new_key('old')}\n")
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        Keyring.read(f"file:{file}")
    file.chmod(0o600)
    ring = Keyring.from_environment({"HOLDFAST_KEYS": f"file:{file}"})
    assert (ring.current, ring.ids) == ("new", ("new", "old"))


def test_without_keys_the_error_says_how():
    with pytest.raises(UsageError, match="holdfast vault new-key"):
        Keyring.from_environment({})
    with pytest.raises(UsageError, match="needs a key"):
        Keyring({})
    with pytest.raises(UsageError, match="'none'"):
        Keyring({"a": base64.b64decode(new_key("a")[2:])}, current="none")
