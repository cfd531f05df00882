"""How mail is sent: where to, as whom, and how patiently; checked when it is said."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.show import show
from holdfast.mail.addresses import read

_ACCEPTED = "smtp+starttls://user:password@mail.example.org:587, smtps://user:password@mail.example.org, smtp://localhost:1025, file:outbox"
_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
_HERE = ("localhost", "127.0.0.1", "::1")
_OPTIONS = ("ca",)


class Server(msgspec.Struct, frozen=True):
    """An SMTP server. Printing it shows no password."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = None
    ca: str | None = None  # a file with the certificates that it may have, instead of the system's

    def tls(self) -> ssl.SSLContext | None:
        """What it must show. There is no way to do without."""
        if self.scheme == "smtp":
            return None
        context = ssl.create_default_context(cafile=self.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context

    def __repr__(self) -> str:
        user = f"{self.user}:***@" if self.user else ""
        return f"{self.scheme}://{user}{self.host}:{self.port}"


class Folder(msgspec.Struct, frozen=True):
    """Where mails are written as .eml files, in development."""

    path: str

    def __repr__(self) -> str:
        return f"file:{self.path}"


class MailSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`Holdfast(mail=MailSettings(url="smtps://…", sender="Shop <shop@example.org>"))`."""

    url: str
    sender: str | None = None  # who it is from, unless `send` says otherwise
    queue: str = "default"
    priority: int = 0
    timeout: float = 60.0  # seconds for one mail
    at_once: int = 10  # connections of one process
    in_fleet: int | None = None  # mails at a time of all processes together
    rest: float = 30.0  # seconds for which nobody asks a server that has failed five times in a row
    rate: float | None = None  # mails a second, of the whole fleet
    attempts: int = 60  # with waits from 10 s to 1 h: about two days

    def __post_init__(self) -> None:
        place(self.url)
        if self.sender is not None:
            read("sender", self.sender)
        check_name("queue", self.queue)
        check_int("priority", self.priority, -100, 100)
        check_seconds("timeout", self.timeout, 0.1, 3_600)
        check_seconds("rest", self.rest, 0.1, 86_400)
        check_int("at_once", self.at_once, 1, 1_000)
        if self.in_fleet is not None:
            check_int("in_fleet", self.in_fleet, 1, 1_000)
        check_int("attempts", self.attempts, 1, 1_000)
        if self.rate is not None and not 0.001 <= self.rate <= 10_000:
            raise UsageError(f"rate is how many mails a second, from 0.001 to 10000; not {show(self.rate)}.")

    def __repr__(self) -> str:
        return f"MailSettings({place(self.url)!r}, sender={self.sender!r})"


def settings_of(
    given: MailSettings | str | None, environment: Mapping[str, str] = os.environ
) -> MailSettings | None:
    """The argument, else HOLDFAST_MAIL_URL, else none; who it is from may stand in HOLDFAST_MAIL_FROM."""
    if isinstance(given, MailSettings):
        return given
    if given is not None and not isinstance(given, str):
        raise UsageError(f"mail is a URL or MailSettings; not {show(given)}.")
    url = environment.get("HOLDFAST_MAIL_URL") or None if given is None else given
    return (
        None if url is None else MailSettings(url=url, sender=environment.get("HOLDFAST_MAIL_FROM") or None)
    )


def place(url: object) -> Server | Folder:
    """Where a URL leads."""
    if not isinstance(url, str):
        raise UsageError(f"The URL of the mail server is text, not {show(url)}.")
    scheme = url.partition(":")[0].lower()
    if scheme == "file":
        return _folder(url)
    if scheme not in _PORTS:
        raise UsageError(
            f"The URL of the mail server begins with {show(scheme)}, which is none of: {_ACCEPTED}."
        )
    return _server(scheme, url)


def _folder(url: str) -> Folder:
    path = unquote(url[len("file:") :])
    path = path[2:] if path.startswith("///") else path
    if not path or path.startswith("//") or "\0" in path:
        raise UsageError(f"{show(url)} names no folder. Such as file:outbox, or file:///var/lib/shop/outbox.")
    return Folder(str(Path(path)))


def _server(scheme: str, url: str) -> Server:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS[scheme]
        host = parts.hostname
    except ValueError:
        raise UsageError(f"The URL of the mail server cannot be read. Such as: {_ACCEPTED}.") from None
    if not host or parts.path not in ("", "/") or parts.fragment:
        raise UsageError(
            f"The URL of the mail server has no host, or too much behind it. Such as: {_ACCEPTED}."
        )
    options = _options(parts.query)
    user = None if parts.username is None else unquote(parts.username)
    password = None if parts.password is None else unquote(parts.password)
    if (user is None) != (password is None):
        raise UsageError("The URL of the mail server has a user without a password, or the other way round.")
    if scheme == "smtp" and user is not None and host not in _HERE:
        raise UsageError(
            f"smtp:// sends the password of {user!r} to {host} where all can read it. "
            "Say smtp+starttls://, mostly port 587, or smtps://, mostly port 465."
        )
    if "ca" in options and scheme == "smtp":
        raise UsageError(
            "smtp:// shows no certificate, so ca= means nothing there. Say smtp+starttls:// or smtps://."
        )
    return Server(scheme, host, port, user, password, options.get("ca"))


def _options(query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in _OPTIONS:
            raise UsageError(
                f"The URL of the mail server has the option {show(name)}; it takes: {', '.join(_OPTIONS)}."
            )
    return options
