"""Where blobs are kept, and by which rules; checked when it is said."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from holdfast.blobs.keys import check_key
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.show import show

_ACCEPTED = "file:blobs, file:///var/lib/shop/blobs, s3://bucket/prefix, s3://bucket?endpoint=https://minio.example.org&region=us-east-1"
_OPTIONS = ("endpoint", "region", "style")
_HERE = ("localhost", "127.0.0.1", "::1")
_DAY = 86_400.0
MOST = 5 * 1024**3  # bytes: what S3 copies in one request


class Folder(msgspec.Struct, frozen=True):
    path: str

    def __repr__(self) -> str:
        return f"file:{self.path}"


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket of an S3. Printing it shows no secret."""

    name: str
    prefix: str = ""  # everything is below it
    endpoint: str  # the service, without the bucket
    region: str
    virtual: bool  # the bucket stands in the host, as AWS has it, or in the path
    access_key: str | None = None  # None: the machine's own, which AWS gives it
    secret_key: str | None = None
    session_token: str | None = None

    @property
    def base(self) -> str:
        """The URL below which objects are."""
        if not self.virtual:
            return f"{self.endpoint}/{self.name}"
        scheme, _, host = self.endpoint.partition("://")
        return f"{scheme}://{self.name}.{host}"

    def __repr__(self) -> str:
        who = f"{self.access_key}:***@" if self.access_key else ""
        return f"s3://{who}{self.name}{'/' + self.prefix if self.prefix else ''} at {self.endpoint}"


Place: TypeAlias = Folder | Bucket


class BlobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`Holdfast(blobs=BlobSettings(url="file:blobs"))`."""

    url: str
    access_key: str | None = None  # of the S3; else in the URL, else AWS_ACCESS_KEY_ID
    secret_key: str | None = None
    public: str = "/blobs"  # where the program serves the links of a folder
    tenants: bool = False  # True: nothing is done outside of `within(tenant=…)`
    most: int = MOST  # bytes of one blob
    quota: int | None = None  # bytes of all blobs of a tenant; None: no limit
    links: float = 900.0  # seconds for which a link is good at most
    unused: float = _DAY  # seconds after which what was staged and never committed is removed
    restorable: float = 7 * _DAY  # seconds after which a deleted blob is gone for good
    queue: str = "default"
    timeout: float = 60.0  # seconds for one request that moves no bytes through this process
    attempts: int = 3  # for each of them

    def __post_init__(self) -> None:
        place(self)
        check_int("most", self.most, 1, MOST)
        if self.quota is not None:
            check_int("quota", self.quota, 1, 2**62)
        check_seconds("links", self.links, 1.0, 7 * _DAY)
        check_seconds("unused", self.unused, 3_600.0)
        check_seconds("restorable", self.restorable, 3_600.0)
        check_name("queue", self.queue)
        check_seconds("timeout", self.timeout, 0.1, 3_600.0)
        check_int("attempts", self.attempts, 1, 20)

    def __repr__(self) -> str:
        return f"BlobSettings({place(self)!r})"


def settings_of(
    given: BlobSettings | str | None, environment: Mapping[str, str] = os.environ
) -> BlobSettings | None:
    """The argument, else HOLDFAST_BLOBS_URL, else none; HOLDFAST_BLOBS_PUBLIC is where links of a folder lead."""
    if isinstance(given, BlobSettings):
        return given
    if given is not None and not isinstance(given, str):
        raise UsageError(f"blobs is a URL or BlobSettings; not {show(given)}.")
    url = environment.get("HOLDFAST_BLOBS_URL") or None if given is None else given
    if url is None:
        return None
    public = environment.get("HOLDFAST_BLOBS_PUBLIC")
    return BlobSettings(url=url, public=public) if public else BlobSettings(url=url)


def place(settings: BlobSettings, environment: Mapping[str, str] = os.environ) -> Place:
    """Where its URL leads: by its scheme alone, never by what else it resembles."""
    url: object = settings.url
    if not isinstance(url, str):
        raise UsageError(f"The URL of the blobs is text, not {show(url)}.")
    match url.partition(":")[0].lower():
        case "file":
            return _folder(url)
        case "s3":
            return _bucket(url, settings, environment)
        case scheme:
            raise UsageError(
                f"The URL of the blobs begins with {show(scheme)}, which is none of: {_ACCEPTED}."
            )


def _folder(url: str) -> Folder:
    path = unquote(url[len("file:") :])
    path = path[2:] if path.startswith("///") else path
    if not path or path.startswith("//") or "\0" in path:
        raise UsageError(f"{show(url)} names no folder. Such as file:blobs, or file:///var/lib/shop/blobs.")
    return Folder(str(Path(path)))


def _bucket(url: str, settings: BlobSettings, environment: Mapping[str, str]) -> Bucket:
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UsageError(f"The URL of the blobs cannot be read. Such as: {_ACCEPTED}.") from None
    if not host or port is not None or parts.fragment:
        raise UsageError(f"The URL of the blobs names no bucket, or too much. Such as: {_ACCEPTED}.")
    for name in options:
        if name not in _OPTIONS:
            raise UsageError(
                f"The URL of the blobs has the option {show(name)}; it takes: {', '.join(_OPTIONS)}."
            )
    access = (
        settings.access_key or unquote(parts.username or "") or environment.get("AWS_ACCESS_KEY_ID") or None
    )
    secret = (
        settings.secret_key
        or unquote(parts.password or "")
        or environment.get("AWS_SECRET_ACCESS_KEY")
        or None
    )
    if (access is None) != (secret is None):
        raise UsageError(
            "The S3 of the blobs has an access key without a secret key, or the other way round."
        )
    region = options.get("region") or environment.get("AWS_REGION") or "us-east-1"
    prefix = parts.path.strip("/")
    return Bucket(
        name=host,
        prefix=check_key(prefix, "prefix") if prefix else "",
        endpoint=_endpoint(options.get("endpoint"), region),
        region=region,
        virtual=_is_virtual(options),
        access_key=access,
        secret_key=secret,
        session_token=None if settings.access_key else environment.get("AWS_SESSION_TOKEN") or None,
    )


def _endpoint(given: str | None, region: str) -> str:
    """None means AWS, and nothing else does."""
    if given is None:
        return f"https://s3.{region}.amazonaws.com"
    parts = urlsplit(given)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.path not in ("", "/")
        or parts.query
    ):
        raise UsageError(
            f"endpoint is the address of the S3 without a path, such as https://minio.example.org:9000; not {show(given)}."
        )
    if parts.scheme == "http" and parts.hostname not in _HERE:
        raise UsageError(
            f"{show(given)} would carry blobs and links where all can read them. Say https://; http:// is for this machine."
        )
    return f"{parts.scheme}://{parts.netloc}"


def _is_virtual(options: Mapping[str, str]) -> bool:
    style = options.get("style", "path" if "endpoint" in options else "virtual")
    if style not in ("path", "virtual"):
        raise UsageError(f"style is path or virtual, not {show(style)}.")
    return style == "virtual"
