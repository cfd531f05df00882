"""The keys: a current one that seals, and older ones that only open. Read from a variable or from a file of our own."""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from holdfast.kernel import randomness
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.vault.errors import UnknownKey

VARIABLE = "HOLDFAST_KEYS"
SIZE = 32
_HOW = (
    f"{VARIABLE} is `id:key,older_id:key`, the current one first, or `file:PATH` of a file with one `id:key` a line. "
    "`holdfast vault new-key` prints one."
)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FEWEST = 12  # different bytes in a key: of 10**9 random ones none has fewer


class Keyring:
    """Keys by their ids, and which of them seals. Printing it shows the ids alone."""

    def __init__(self, keys: Mapping[str, bytes], *, current: str | None = None) -> None:
        """`current` is the first unless you say otherwise."""
        if not keys:
            raise UsageError(f"A keyring needs a key. {_HOW}")
        for key_id, key in keys.items():
            _check(key_id, key)
        self._keys = dict(keys)
        self.current = next(iter(keys)) if current is None else current
        if self.current not in self._keys:
            raise UsageError(
                f"The current key {show(self.current)} is not in the keyring. There are: {', '.join(keys)}."
            )

    @classmethod
    def read(cls, text: str) -> Keyring:
        """`id:key,older:key` with keys in base64, or `file:PATH`."""
        if not text.strip():
            raise UsageError(f"{VARIABLE} is empty. {_HOW}")
        if text.startswith("file:"):
            return cls(_pairs(_lines(Path(text.removeprefix("file:")))))
        return cls(_pairs(text.split(",")))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Keyring:
        if VARIABLE not in environment:
            raise UsageError(f"There are no keys: {VARIABLE} is not set. {_HOW}")
        return cls.read(environment[VARIABLE])

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    def key(self, key_id: str) -> bytes:
        found = self._keys.get(key_id)
        if found is None:
            raise UnknownKey(
                f"This was sealed under the key {show(key_id)}, which the keyring does not have. "
                f"There are: {', '.join(self._keys)}. Keep an old key until `holdfast vault rotate` has ended."
            )
        return found

    def __repr__(self) -> str:
        return f"Keyring({', '.join(self._keys)}; current: {self.current})"


def new_key(key_id: str) -> str:
    """`id:key` with a new random key, as a line of a file or the beginning of the variable."""
    _check_id(key_id)
    return f"{key_id}:{base64.b64encode(randomness.random_bytes(SIZE)).decode()}"


def _lines(path: Path) -> list[str]:
    try:
        mode = path.stat().st_mode
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The keys cannot be read from {path}: {error}. {_HOW}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(
            f"Others may read the keys in {path} (mode {stat.S_IMODE(mode):o}). Run: chmod 600 {path}"
        )
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _pairs(items: list[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for position, item in enumerate(items, 1):
        key_id, colon, text = item.strip().partition(":")
        if not colon:
            raise UsageError(f"Key {position} has no id before a colon. {_HOW}")
        if not _ID.fullmatch(key_id):  # not shown: it may be the key, in the wrong place
            raise UsageError(f"What stands before the colon of key {position} is no id. {_HOW}")
        if key_id in found:
            raise UsageError(f"The key {key_id!r} is given twice. A new key needs a new id.")
        found[key_id] = _decoded(key_id, text)
    return found


def _decoded(key_id: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f"The key {key_id!r} is not base64. {_HOW}") from error


def _check(key_id: str, key: bytes) -> None:
    _check_id(key_id)
    if len(key) != SIZE:
        raise UsageError(f"The key {key_id!r} must be {SIZE} bytes; it is {len(key)} bytes. {_HOW}")
    if len(set(key)) < _FEWEST or all(32 <= byte < 127 for byte in key):
        raise UsageError(
            f"The key {key_id!r} is not random: it is text, or a pattern. A key that can be guessed protects nothing. "
            "Make one by `holdfast vault new-key`."
        )


def _check_id(key_id: str) -> None:
    if not _ID.fullmatch(key_id):
        raise UsageError(
            f"A key's id is letters, digits, dots, dashes and underscores, at most 64, such as 2026-11; not {show(key_id)}."
        )
