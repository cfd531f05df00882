"""Every variable that the publisher reads, with its default and range. A wrong one stops the start, by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from urllib.parse import urlsplit

from holdfast.blobs import BlobSettings
from holdfast.errors import UsageError
from holdfast.mail import MailSettings
from holdfast.settings import WrongSettings, read, setting
from holdfast.vault import Keyring, SecretValue

PREFIXES = ("PUBLISHER_", "DEVIANTART_", "RATE_LIMITER_", "CIRCUIT_BREAKER_", "S3_", "HEALTH_CHECK_", "SMTP_")
SIMULATOR = "http://127.0.0.1:8700"
_SECRET_OF_SIMULATOR = "simulator-secret"  # noqa: S105  the simulator knows no other
_A_MINUTE = 60_000


@dataclass(frozen=True)
class Settings:
    database_url: str = setting("DATABASE_URL", "sqlite:///publisher.db", "SQLite file or PostgreSQL")
    redis_url: str | None = setting(
        "REDIS_URL", None, "Redis for guards, cache and sessions; without it the database does"
    )
    environment: str = setting(
        "PUBLISHER_ENV",
        "",
        "production refuses defaults that are for trying out",
        one_of=("production", "development"),
    )
    node_env: str = setting("NODE_ENV", "", "the same, as other deployments call it")
    public_url: str = setting("PUBLISHER_PUBLIC_URL", "http://127.0.0.1:8080", "where artists find the pages")
    host: str = setting("PUBLISHER_HOST", "127.0.0.1", "address of the pages")
    port: int = setting("PUBLISHER_PORT", 8080, "port of the pages", low=1, high=65_535)
    proxies: str = setting(
        "PUBLISHER_PROXIES", "", "networks whose X-Forwarded-For is believed, with commas between"
    )

    client_id: str = setting(
        "DEVIANTART_CLIENT_ID", "4711", "of the application at DeviantArt; the simulator's when unset"
    )
    client_secret: SecretValue = setting(
        "DEVIANTART_CLIENT_SECRET", SecretValue(_SECRET_OF_SIMULATOR), "its secret"
    )
    deviantart_url: str = setting(
        "DEVIANTART_BASE_URL", SIMULATOR, "https://www.deviantart.com for the real one"
    )

    concurrency: int = setting(
        "PUBLISHER_CONCURRENCY", 5, "posts that one process publishes at a time", low=1, high=500
    )
    attempts: int = setting(
        "PUBLISHER_MAX_ATTEMPTS", 7, "runs of a post before it has failed", low=1, high=50
    )
    job_timeout_ms: int = setting(
        "PUBLISHER_JOB_TIMEOUT_MS", 600_000, "one run of a post", low=1_000, high=6 * 60 * _A_MINUTE
    )

    limiter_enabled: bool = setting("RATE_LIMITER_ENABLED", True, "a pace for each artist")
    base_delay_ms: int = setting(
        "RATE_LIMITER_BASE_DELAY_MS", 3_000, "between two calls of an artist, at first", low=1, high=_A_MINUTE
    )
    max_delay_ms: int = setting(
        "RATE_LIMITER_MAX_DELAY_MS",
        300_000,
        "between two calls of an artist, at most",
        low=1,
        high=60 * _A_MINUTE,
    )
    jitter_percent: float = setting(
        "RATE_LIMITER_JITTER_PERCENT", 20.0, "how much longer a pause may be", low=0, high=100
    )
    success_factor: float = setting(
        "RATE_LIMITER_SUCCESS_DECREASE_FACTOR", 0.9, "of the delay, after an answer", low=0.1, high=1.0
    )
    failure_factor: float = setting(
        "RATE_LIMITER_FAILURE_INCREASE_FACTOR", 2.0, "of the delay, after a 429", low=1.0, high=100.0
    )
    fastest_ms: int = setting(
        "PUBLISHER_FASTEST_DELAY_MS", 1_000, "between two calls of an artist, at least", low=1, high=_A_MINUTE
    )
    longest_rest_ms: int = setting(
        "PUBLISHER_LONGEST_REST_MS",
        2_400_000,
        "a rest after 429 in a row, at most",
        low=1,
        high=24 * 60 * _A_MINUTE,
    )

    breaker_enabled: bool = setting("CIRCUIT_BREAKER_ENABLED", True, "stop calling while DeviantArt fails")
    breaker_threshold: int = setting(
        "CIRCUIT_BREAKER_THRESHOLD", 3, "failures in a minute that open it", low=1, high=1_000
    )
    breaker_open_ms: int = setting(
        "CIRCUIT_BREAKER_OPEN_DURATION_MS",
        300_000,
        "how long it stays open",
        low=10,
        high=24 * 60 * _A_MINUTE,
    )
    breaker_in_redis: bool = setting(
        "CIRCUIT_BREAKER_PERSIST_TO_REDIS", True, "in Redis when REDIS_URL is set, else in the database"
    )

    s3_endpoint: str | None = setting("S3_ENDPOINT", None, "MinIO, R2 …; without it a bucket is one of AWS")
    s3_bucket: str | None = setting("S3_BUCKET_NAME", None, "files are kept there; without it in a folder")
    s3_key: str | None = setting("S3_ACCESS_KEY_ID", None, "of the S3")
    s3_secret: SecretValue | None = setting("S3_SECRET_ACCESS_KEY", None, "of the S3")
    s3_region: str = setting("S3_REGION", "auto", "of the bucket")
    s3_prefix: str = setting("S3_PATH_PREFIX", "", "below which this deployment keeps its files")
    files: str = setting("PUBLISHER_FILES", "publisher-files", "the folder for files without an S3")
    quota_bytes: int = setting(
        "PUBLISHER_QUOTA_BYTES", 5_000_000_000, "of files, for each artist", low=1_000_000
    )

    mail_url: str = setting(
        "SMTP_URL", "", "such as smtps://user:password@host; a folder of .eml files when unset"
    )
    mail_from: str = setting("SMTP_FROM", "Publisher <publisher@localhost>", "the sender of mails")
    keys: SecretValue | None = setting(
        "PUBLISHER_KEYS", None, "seal tokens: `holdfast vault new-key`; the older ones behind it"
    )

    health_enabled: bool = setting("HEALTH_CHECK_ENABLED", True, "probes and metrics of workers")
    health_host: str = setting("HEALTH_CHECK_HOST", "127.0.0.1", "address of probes; 0.0.0.0 in a container")
    health_port: int = setting("HEALTH_CHECK_PORT", 8000, "port of probes", low=1, high=65_535)
    watchdog_s: int = setting(
        "PUBLISHER_WATCHDOG_S", 60, "a process that stands still so long ends itself", low=5, high=3_600
    )
    settle_s: float = setting(
        "PUBLISHER_SETTLE_S",
        60.0,
        "until a post that cannot be found counts as not sent",
        low=0.01,
        high=3_600,
    )
    look_again_s: float = setting(
        "PUBLISHER_LOOK_AGAIN_S",
        60.0,
        "until an unknown post is looked up again, at first",
        low=0.01,
        high=3_600,
    )
    call_timeout_s: float = setting(
        "PUBLISHER_CALL_TIMEOUT_S", 30.0, "for one call of DeviantArt", low=0.1, high=600
    )
    keep_files_days: int = setting(
        "PUBLISHER_KEEP_FILES_DAYS",
        7,
        "published files are thinned to a preview then; 0 keeps them",
        low=0,
        high=36_500,
    )

    @property
    def is_production(self) -> bool:
        return "production" in (self.environment, self.node_env)

    @property
    def is_simulated(self) -> bool:
        return self.deviantart_url == SIMULATOR or self.client_secret.reveal() == _SECRET_OF_SIMULATOR

    @property
    def guards_url(self) -> str | None:
        return self.redis_url if self.breaker_in_redis else None

    @property
    def is_secure(self) -> bool:
        return self.public_url.startswith("https://")

    def blobs(self) -> BlobSettings:
        return BlobSettings(
            url=self._place(),
            access_key=self.s3_key,
            secret_key=None if self.s3_secret is None else self.s3_secret.reveal(),
            public=f"{self.public_url.rstrip('/')}/blobs",
            tenants=True,
            queue="r2-cleanup",
        )

    def _place(self) -> str:
        if self.s3_bucket is None:
            return f"file:{self.files}"
        prefix = f"/{self.s3_prefix.strip('/')}" if self.s3_prefix.strip("/") else ""
        endpoint = f"&endpoint={self.s3_endpoint}" if self.s3_endpoint else ""
        return f"s3://{self.s3_bucket}{prefix}?region={self.s3_region}{endpoint}"

    def mail(self) -> MailSettings:
        return MailSettings(url=self.mail_url or "file:publisher-mail", sender=self.mail_from)


def settings_of(environment: Mapping[str, str] = os.environ) -> Settings:
    found = read(Settings, environment, prefixes=PREFIXES)
    _check_together(found)
    if found.is_production:
        _check_production(found)
    return found


def _check_together(found: Settings) -> None:
    """What a single type or range does not say."""
    wrong = [*_wrong_addresses(found), *_wrong_proxies(found.proxies)]
    wrong = wrong or [*_wrong_parts(found)]
    if found.max_delay_ms < found.base_delay_ms:
        wrong.append(
            f"RATE_LIMITER_MAX_DELAY_MS: {found.max_delay_ms} is less than RATE_LIMITER_BASE_DELAY_MS={found.base_delay_ms}."
        )
    if found.s3_bucket is None and (found.s3_endpoint or found.s3_key):
        wrong.append("S3_BUCKET_NAME: the other S3 settings are there, and the bucket is not.")
    if (found.s3_key is None) != (found.s3_secret is None):
        wrong.append("S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY: both are needed, or none.")
    if wrong:
        raise WrongSettings("These settings cannot be:\n" + "\n".join(f"  {each}" for each in wrong))


def _wrong_addresses(found: Settings) -> Iterator[str]:
    for name, url, schemes in (
        ("DATABASE_URL", found.database_url, ("sqlite", "postgresql", "postgres")),
        ("REDIS_URL", found.redis_url, ("redis", "rediss", "unix")),
        ("PUBLISHER_PUBLIC_URL", found.public_url, ("http", "https")),
        ("DEVIANTART_BASE_URL", found.deviantart_url, ("http", "https")),
        ("S3_ENDPOINT", found.s3_endpoint, ("http", "https")),
        ("SMTP_URL", found.mail_url, ("smtp", "smtps", "file")),
    ):
        if url and urlsplit(url).scheme.partition("+")[0] not in schemes:
            shown = url.partition("@")[2] or url  # a password stands before the @
            yield f"{name}: it begins with {'://, '.join(schemes)}://, and {shown!r} does not."


def _wrong_parts(found: Settings) -> Iterator[str]:
    """What Holdfast says of it, by the names that it has here."""
    for names, make in (
        ("SMTP_URL, SMTP_FROM", found.mail),
        ("PUBLISHER_KEYS", lambda: found.keys and Keyring.read(found.keys.reveal())),
    ):
        try:
            make()
        except UsageError as error:
            yield f"{names}: {error}"


def _wrong_proxies(proxies: str) -> Iterator[str]:
    for each in filter(None, map(str.strip, proxies.split(","))):
        try:
            ip_network(each, strict=False)
        except ValueError:
            yield f"PUBLISHER_PROXIES: {each!r} is no address or network, such as 10.0.0.0/8."


def _check_production(found: Settings) -> None:
    """What is fine for trying out, and for nothing else."""
    wrong = []
    if found.is_simulated:
        wrong.append(
            "DEVIANTART_CLIENT_ID, DEVIANTART_CLIENT_SECRET, DEVIANTART_BASE_URL: they are the simulator's."
        )
    if found.keys is None:
        wrong.append(
            "PUBLISHER_KEYS: tokens would be sealed with a key that was made for trying out. `holdfast vault new-key` makes one."
        )
    if not found.is_secure:
        wrong.append(f"PUBLISHER_PUBLIC_URL: {found.public_url} is not https.")
    if not found.mail_url:
        wrong.append("SMTP_URL: mails would go into a folder.")
    if wrong:
        raise WrongSettings(
            "These settings are not for production:\n" + "\n".join(f"  {each}" for each in wrong)
        )
