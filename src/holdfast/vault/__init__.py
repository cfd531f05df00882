"""Secrets at rest: sealed with AES-256-GCM under named keys, each bound to the place where it is kept.

`hf.vault` has the keys of the environment. Nothing of the cryptography library is imported before a secret is sealed or opened.
"""

from holdfast.vault.errors import SealBroken, UnknownKey
from holdfast.vault.keyring import Keyring, new_key
from holdfast.vault.place import Place
from holdfast.vault.secret_value import SecretValue
from holdfast.vault.vault import Vault

__all__ = ["Keyring", "Place", "SealBroken", "SecretValue", "UnknownKey", "Vault", "new_key"]
