"""Whom alerts are told, and from where on something is worth one; checked when it is said."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_seconds
from holdfast.kernel.show import show
from holdfast.mail.addresses import read
from holdfast.observe.alerts.signing import keys_of

_DAY = 86_400.0
_SECONDS = {
    "again": (1.0, 30 * _DAY),
    "calm": (0.0, _DAY),
    "lag": (1.0, 30 * _DAY),
    "waiting": (1.0, 30 * _DAY),
    "timeout": (0.1, 60.0),
    "every": (0.1, 3_600.0),
}
_HERE = ("localhost", "127.0.0.1", "::1")


class AlertSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`Holdfast(alerts=AlertSettings(webhook="https://…", secret="whsec_…", mail=["ops@example.org"]))`."""

    webhook: str | None = None
    secret: str | None = None  # signs what the webhook is sent; two with a space between while it is changed
    mail: Sequence[str] = ()  # addresses
    again: float = 3_600.0  # seconds after which an alert that has grown is told once more
    calm: float = 30.0  # seconds for which something must not hold any more before it is told as over
    lag: float = 60.0  # seconds that the outbox or a view may be behind
    waiting: float = 300.0  # seconds that a ready job may wait
    timeout: float = 10.0  # seconds for an answer of the webhook
    every: float = 5.0  # seconds between two looks

    def __post_init__(self) -> None:
        if self.webhook is not None:
            check_webhook(self.webhook)
            if self.secret is None:
                raise UsageError(
                    "A webhook needs a secret, so that its receiver can tell our messages from those of others. Say secret= or "
                    "set HOLDFAST_ALERTS_SECRET: `python -c \"import secrets; print('whsec_' + secrets.token_urlsafe(32))\"` makes one."
                )
        if self.secret is not None:
            keys_of(self.secret)
        if isinstance(self.mail, str):
            raise UsageError(f"mail is a list of addresses, such as [{self.mail!r}].")
        for each in self.mail:
            read("mail", each)
        for name, (low, high) in _SECONDS.items():
            check_seconds(name, getattr(self, name), low, high)

    @property
    def is_plain(self) -> bool:
        """Whether what the webhook is sent can be read on its way."""
        parts = urlsplit(self.webhook or "https://")
        return parts.scheme == "http" and parts.hostname not in _HERE

    def __repr__(self) -> str:
        webhook = None if self.webhook is None else place_of(self.webhook)
        return f"AlertSettings(webhook={webhook!r}, mail={len(self.mail)} addresses)"


def settings_of(given: AlertSettings | None, environment: Mapping[str, str] = os.environ) -> AlertSettings:
    """What is said in code; what is not, of HOLDFAST_ALERTS_WEBHOOK, HOLDFAST_ALERTS_SECRET and HOLDFAST_ALERTS_MAIL."""
    if given is not None and not isinstance(given, AlertSettings):
        raise UsageError(f"alerts are AlertSettings; not {show(given)}.")
    said = AlertSettings() if given is None else given
    found = {
        name: environment[variable]
        for name in ("webhook", "secret")
        if getattr(said, name) is None and environment.get(variable := f"HOLDFAST_ALERTS_{name.upper()}")
    }
    addresses = tuple(
        filter(None, (each.strip() for each in environment.get("HOLDFAST_ALERTS_MAIL", "").split(",")))
    )
    mail = {"mail": addresses} if addresses and not said.mail else {}
    return msgspec.structs.replace(said, **found, **mail)


def check_webhook(url: object) -> None:
    if not isinstance(url, str):
        raise UsageError(f"The webhook is a URL; not {show(url)}.")
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or not url.isascii() or not url.isprintable() or " " in url or parts.username is not None:
        raise UsageError(
            "The webhook is no URL that we can post to. Such as https://ops.example.org/alerts, without a user and a password."
        )


def place_of(url: str) -> str:
    """Without its path, which may hold a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
