"""Seals and opens values: AES-256-GCM, with a key derived for each value and the place authenticated."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from holdfast.kernel import randomness
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.vault.errors import SealBroken
from holdfast.vault.keyring import Keyring
from holdfast.vault.place import Place
from holdfast.vault.secret_value import SecretValue, revealed

LONGEST = 1_000_000  # bytes of a secret; a file belongs into hf.blobs
_MARK = "hfv1"
_SALT, _NONCE, _TAG = 16, 12, 16
_INFO = b"holdfast vault 1"


class Vault:
    """`vault.seal("token", Place("accounts", "refresh_token", row="7"))` gives text to store; `open` needs the same place."""

    def __init__(self, keyring: Keyring) -> None:
        self._given = keyring

    def keyring(self) -> Keyring:
        return self._given

    def seal(self, value: str | SecretValue, place: Place) -> str:
        """The value as text for a column, under the current key. It differs each time."""
        plain = _plain(revealed(value))
        key_id = self.keyring().current
        salt, nonce = randomness.random_bytes(_SALT), randomness.random_bytes(_NONCE)
        sealed = _cipher(self.keyring().key(key_id), salt).encrypt(nonce, plain, place.bound_to(key_id))
        return f"{_MARK}:{key_id}:{base64.urlsafe_b64encode(salt + nonce + sealed).decode()}"

    def open(self, sealed: str, place: Place) -> SecretValue:
        """The value, when it was sealed for this place; else SealBroken or UnknownKey."""
        key_id, data = _parts(sealed)
        salt, nonce, text = data[:_SALT], data[_SALT : _SALT + _NONCE], data[_SALT + _NONCE :]
        key = self.keyring().key(key_id)
        try:
            plain = _cipher(key, salt).decrypt(nonce, text, place.bound_to(key_id))
        except _invalid_tag() as error:
            raise SealBroken(
                f"The sealed value of {place} does not open: it was changed, moved from another row, column or tenant, "
                f"or the key {key_id!r} is not the one that sealed it."
            ) from error
        return SecretValue(plain.decode("utf-8", "surrogatepass"))

    def is_current(self, sealed: str) -> bool:
        """Whether the current key sealed it."""
        return key_id_of(sealed) == self.keyring().current

    def reseal(self, sealed: str, place: Place) -> str:
        """The same value under the current key."""
        return self.seal(self.open(sealed, place), place)

    def __repr__(self) -> str:
        return f"Vault({self._given!r})"


def key_id_of(sealed: str) -> str:
    return _parts(sealed)[0]


def sealed_under(key_id: str) -> str:
    """What all sealed texts of this key begin with."""
    return f"{_MARK}:{key_id}:"


def is_sealed(text: object) -> bool:
    """Whether it looks like something that `seal` made."""
    return isinstance(text, str) and text.startswith(f"{_MARK}:")


def _plain(text: str) -> bytes:
    plain = text.encode("utf-8", "surrogatepass")
    if len(plain) > LONGEST:
        raise UsageError(f"A secret has at most {LONGEST:,} bytes; this one has {len(plain):,}.")
    return plain


def _parts(sealed: str) -> tuple[str, bytes]:
    if not is_sealed(sealed):
        raise SealBroken(
            f"This is not a sealed value: {type(sealed).__name__}, and it does not begin with {_MARK}: "
            "A value that was stored as it is must be sealed first."
        )
    _, _, rest = sealed.partition(":")
    key_id, colon, text = rest.partition(":")
    try:
        data = base64.urlsafe_b64decode(text.encode("ascii")) if colon else b""
    except (binascii.Error, UnicodeEncodeError):
        data = b""
    if len(data) < _SALT + _NONCE + _TAG or base64.urlsafe_b64encode(data).decode() != text:
        raise SealBroken(f"The sealed value under the key {show(key_id)} is cut off or changed.")
    return key_id, data


def _cipher(key: bytes, salt: bytes) -> Any:
    """A key of its own for each value: so no key seals so often that two equal nonces become likely."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415
    except ImportError as error:
        raise UsageError("Sealing needs the cryptography library: pip install 'holdfast[vault]'.") from error
    return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=salt, info=_INFO).derive(key))


def _invalid_tag() -> type[Exception]:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415

    return InvalidTag
