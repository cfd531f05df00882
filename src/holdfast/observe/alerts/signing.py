"""Signatures of webhooks, as the Standard Webhooks specification has them: HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

import msgspec

from holdfast.kernel.clock import now
from holdfast.kernel.errors import HoldfastError, UsageError
from holdfast.observe.alerts.alert import Alert

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_PREFIX, _VERSION = "whsec_", "v1,"
_SHORTEST = 16  # bytes of a key
_MOST_SIGNATURES = 10  # of one message that are compared
_LARGEST = 64 * 1024  # bytes of a message


class NotOurAlert(HoldfastError):
    """A message that claims to be an alert is not signed with the secret, or is too old."""


def keys_of(secret: object) -> list[bytes]:
    """One, or two while it is changed. With `whsec_` before it a secret is base64, else it counts as it is written."""
    if not isinstance(secret, str):
        raise UsageError("The secret of the webhook is text.")
    keys = [_key(each) for each in secret.split()]
    if not keys or any(len(each) < _SHORTEST for each in keys):
        raise UsageError(
            f"The secret of the webhook is too short: at least {_SHORTEST} bytes, made by chance."
        )
    return keys


def _key(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        return secret.encode()
    text = secret[len(_PREFIX) :].replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise UsageError(
            "The secret of the webhook begins with whsec_, and what follows is not base64."
        ) from None


def signed(secret: str, delivery: str, timestamp: int, body: bytes) -> str:
    """The header's value: one signature for each secret."""
    return " ".join(_VERSION + _signature(key, delivery, timestamp, body) for key in keys_of(secret))


def _signature(key: bytes, delivery: str, timestamp: int, body: bytes) -> str:
    content = b".".join((delivery.encode(), str(timestamp).encode(), body))
    return base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def verify_alert(body: bytes, headers: Mapping[str, str], secret: str, *, tolerance: float = 300.0) -> Alert:
    """The alert of a message that a webhook was sent; NotOurAlert when the signature is wrong, or older than `tolerance` seconds.

    `webhook-id` is the same for every try of one message: keep it, and drop a message that you had.
    """
    keys, found = keys_of(secret), {name.lower(): value for name, value in headers.items()}
    if not {ID, TIMESTAMP, SIGNATURE} <= found.keys():
        raise NotOurAlert(f"The message has no signature: it lacks {ID}, {TIMESTAMP} or {SIGNATURE}.")
    if len(body) > _LARGEST:
        raise NotOurAlert(f"The message has {len(body):,} bytes, and an alert is smaller than {_LARGEST:,}.")
    timestamp = found[TIMESTAMP]
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
        raise NotOurAlert(f"{TIMESTAMP} is no number of seconds.")
    if abs(now() - int(timestamp)) > tolerance:
        raise NotOurAlert(
            f"The message was signed more than {tolerance:g} s ago, or will be: it may be sent again by a stranger."
        )
    given = [
        each[len(_VERSION) :]
        for each in found[SIGNATURE].split()[:_MOST_SIGNATURES]
        if each.startswith(_VERSION)
    ]
    wanted = [_signature(key, found[ID], int(timestamp), body) for key in keys]
    if not any(hmac.compare_digest(mine.encode(), its.encode()) for mine in wanted for its in given):
        raise NotOurAlert("The signature is not made with this secret, for this message.")
    try:
        return msgspec.json.decode(body, type=Alert)
    except msgspec.MsgspecError as error:
        raise NotOurAlert(f"The message is signed, and is no alert: {error}") from None
