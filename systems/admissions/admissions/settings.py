"""Every variable that the portal reads, with its default and range. A wrong one stops the start, by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from zoneinfo import ZoneInfo, available_timezones

from holdfast.blobs import BlobSettings
from holdfast.mail import MailSettings
from holdfast.settings import WrongSettings, read, setting
from holdfast.vault import SecretValue

PREFIXES = ("ADMISSIONS_", "STRIPE_", "CLAMD_", "SMTP_", "S3_", "HEALTH_CHECK_")
STRIPE_SIMULATOR = "http://127.0.0.1:8710"
_KEY_OF_SIMULATOR, _HOOK_OF_SIMULATOR = "sk_test_simulator", "whsec_simulator"


@dataclass(frozen=True)
class Settings:
    database_url: str = setting("DATABASE_URL", "sqlite:///admissions.db", "SQLite file or PostgreSQL")
    redis_url: str | None = setting(
        "REDIS_URL", None, "Redis for guards and cache; without it the database does"
    )
    environment: str = setting(
        "ADMISSIONS_ENV",
        "",
        "production refuses defaults that are for trying out",
        one_of=("production", "development"),
    )
    university: str = setting(
        "ADMISSIONS_UNIVERSITY", "University of Halong", "its name on pages and in letters"
    )
    zone: str = setting("ADMISSIONS_ZONE", "Asia/Ho_Chi_Minh", "the zone of deadlines")
    public_url: str = setting("ADMISSIONS_PUBLIC_URL", "http://127.0.0.1:8081", "where people find the pages")
    host: str = setting("ADMISSIONS_HOST", "127.0.0.1", "address of the pages")
    port: int = setting("ADMISSIONS_PORT", 8081, "port of the pages", low=1, high=65_535)
    proxies: str = setting(
        "ADMISSIONS_PROXIES", "", "networks whose X-Forwarded-For is believed, with commas between"
    )

    stripe_key: SecretValue = setting(
        "STRIPE_API_KEY", SecretValue(_KEY_OF_SIMULATOR), "of the account; the simulator's when unset"
    )
    stripe_hook: SecretValue = setting(
        "STRIPE_WEBHOOK_SECRET", SecretValue(_HOOK_OF_SIMULATOR), "signs webhooks"
    )
    stripe_url: str = setting("STRIPE_BASE_URL", STRIPE_SIMULATOR, "https://api.stripe.com for the real one")
    stripe_rate: float = setting(
        "STRIPE_CALLS_A_SECOND", 20.0, "of the fleet; a sandbox takes 25", low=0.1, high=10_000
    )
    stripe_timeout_s: float = setting("STRIPE_TIMEOUT_S", 5.0, "for one call", low=0.1, high=60)
    fee: int = setting("ADMISSIONS_FEE", 7500, "minor units, of new terms", low=0, high=10_000_000)
    currency: str = setting("ADMISSIONS_CURRENCY", "usd", "of new terms", one_of=("usd", "eur", "vnd"))

    clamd: str | None = setting(
        "CLAMD_ADDRESS", None, "host:port or /path/of/socket; the built-in checker when unset"
    )
    clamd_timeout_s: float = setting("CLAMD_TIMEOUT_S", 30.0, "for one file", low=0.1, high=600)

    verify_at_once: int = setting(
        "ADMISSIONS_VERIFY_AT_ONCE", 3, "files scanned at a time, in the fleet", low=1, high=100
    )
    pay_at_once: int = setting(
        "ADMISSIONS_PAY_AT_ONCE", 2, "payments at a time, in the fleet", low=1, high=100
    )
    mail_at_once: int = setting(
        "ADMISSIONS_MAIL_AT_ONCE", 4, "mails at a time, in the fleet", low=1, high=100
    )
    attempts: int = setting(
        "ADMISSIONS_ATTEMPTS", 3, "runs of a stage before a person is asked", low=1, high=50
    )
    first_wait_s: float = setting(
        "ADMISSIONS_FIRST_WAIT_S", 2.0, "at most, before the second run", low=0, high=3_600
    )
    breaker_open_s: float = setting(
        "ADMISSIONS_BREAKER_OPEN_S", 30.0, "rest of a service that fails", low=0.1, high=3_600
    )
    look_every_s: float = setting(
        "ADMISSIONS_LOOK_EVERY_S", 60.0, "Stripe is asked when no webhook came", low=1, high=86_400
    )
    oldest_s: float = setting(
        "ADMISSIONS_OLDEST_S", 600.0, "older waiting work closes the door (503)", low=1, high=86_400
    )

    s3_endpoint: str | None = setting("S3_ENDPOINT", None, "MinIO, R2 …; without it a bucket is one of AWS")
    s3_bucket: str | None = setting("S3_BUCKET_NAME", None, "files are kept there; without it in a folder")
    s3_key: str | None = setting("S3_ACCESS_KEY_ID", None, "of the S3")
    s3_secret: SecretValue | None = setting("S3_SECRET_ACCESS_KEY", None, "of the S3")
    s3_region: str = setting("S3_REGION", "auto", "of the bucket")
    files: str = setting("ADMISSIONS_FILES", "admissions-files", "the folder for files without an S3")

    mail_url: str = setting(
        "SMTP_URL", "", "such as smtps://user:password@host; a folder of .eml files when unset"
    )
    mail_from: str = setting("SMTP_FROM", "Admissions <admissions@localhost>", "the sender of mails")

    health_enabled: bool = setting("HEALTH_CHECK_ENABLED", True, "probes and metrics of workers")
    health_host: str = setting("HEALTH_CHECK_HOST", "127.0.0.1", "address of probes; 0.0.0.0 in a container")
    health_port: int = setting("HEALTH_CHECK_PORT", 8001, "port of probes", low=1, high=65_535)

    @property
    def is_production(self) -> bool:
        return self.environment == "production"

    @property
    def is_simulated(self) -> bool:
        return self.stripe_key.reveal() == _KEY_OF_SIMULATOR

    @property
    def is_secure(self) -> bool:
        return self.public_url.startswith("https://")

    @property
    def its_zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    def blobs(self) -> BlobSettings:
        return BlobSettings(
            url=self._place(),
            access_key=self.s3_key,
            secret_key=None if self.s3_secret is None else self.s3_secret.reveal(),
            public=f"{self.public_url.rstrip('/')}/blobs",
            tenants=True,
            most=25_000_000,
        )

    def _place(self) -> str:
        if self.s3_bucket is None:
            return f"file:{self.files}"
        endpoint = f"&endpoint={self.s3_endpoint}" if self.s3_endpoint else ""
        return f"s3://{self.s3_bucket}?region={self.s3_region}{endpoint}"

    def mail(self) -> MailSettings:
        url = self.mail_url or "file:admissions-mail"
        places = self.mail_at_once
        return MailSettings(
            url=url,
            sender=self.mail_from,
            queue="send_email",
            at_once=places,
            in_fleet=places,
            rest=self.breaker_open_s,
        )


def settings_of(environment: Mapping[str, str] = os.environ) -> Settings:
    found = read(Settings, environment, prefixes=PREFIXES)
    if found.zone not in available_timezones():
        raise WrongSettings(f"ADMISSIONS_ZONE: {found.zone!r} is no zone, such as Asia/Ho_Chi_Minh.")
    if found.s3_bucket is None and (found.s3_endpoint or found.s3_key):
        raise WrongSettings("S3_BUCKET_NAME: the other S3 settings are there, and the bucket is not.")
    if found.is_production:
        _check_production(found)
    return found


def _check_production(found: Settings) -> None:
    """What is fine for trying out, and for nothing else."""
    wrong = []
    if (
        found.is_simulated
        or found.stripe_hook.reveal() == _HOOK_OF_SIMULATOR
        or found.stripe_url == STRIPE_SIMULATOR
    ):
        wrong.append("STRIPE_API_KEY, STRIPE_WEBHOOK_SECRET, STRIPE_BASE_URL: they are the simulator's.")
    if found.clamd is None:
        wrong.append("CLAMD_ADDRESS: the built-in checker is no virus scanner.")
    if not found.is_secure:
        wrong.append(f"ADMISSIONS_PUBLIC_URL: {found.public_url} is not https.")
    if not found.mail_url:
        wrong.append("SMTP_URL: mails would go into a folder.")
    if wrong:
        raise WrongSettings(
            "These settings are not for production:\n" + "\n".join(f"  {each}" for each in wrong)
        )
