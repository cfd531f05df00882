"""What can be wrong with a sealed value. No message has the value, a key or a part of either."""

from __future__ import annotations

from holdfast.kernel.errors import HoldfastError


class SealBroken(HoldfastError):
    """The sealed text was changed, or it was sealed for another place, or under another key of the same name."""


class UnknownKey(HoldfastError):
    """The value was sealed under a key that the keyring does not have."""
