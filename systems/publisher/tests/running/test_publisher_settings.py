"""Every variable: what it changes, and that what it cannot be stops the start with its name, its value and what it may be."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from publisher import core
from publisher.settings import PREFIXES, Settings, settings_of

from holdfast.errors import UsageError
from holdfast.settings import WrongSettings
from holdfast.vault import new_key

DECLARED = [each.metadata["setting"] for each in fields(Settings)]
NUMBERS = [each for each in DECLARED if each.low is not None]
ORIGINAL = [
    "DATABASE_URL",
    "REDIS_URL",
    "DEVIANTART_CLIENT_ID",
    "DEVIANTART_CLIENT_SECRET",
    "NODE_ENV",
    "S3_ENDPOINT",
    "S3_ACCESS_KEY_ID",
    "S3_SECRET_ACCESS_KEY",
    "S3_BUCKET_NAME",
    "S3_REGION",
    "S3_PATH_PREFIX",
    "PUBLISHER_CONCURRENCY",
    "PUBLISHER_MAX_ATTEMPTS",
    "PUBLISHER_JOB_TIMEOUT_MS",
    "HEALTH_CHECK_PORT",
    "HEALTH_CHECK_ENABLED",
    "RATE_LIMITER_ENABLED",
    "RATE_LIMITER_BASE_DELAY_MS",
    "RATE_LIMITER_MAX_DELAY_MS",
    "RATE_LIMITER_JITTER_PERCENT",
    "RATE_LIMITER_SUCCESS_DECREASE_FACTOR",
    "RATE_LIMITER_FAILURE_INCREASE_FACTOR",
    "CIRCUIT_BREAKER_ENABLED",
    "CIRCUIT_BREAKER_THRESHOLD",
    "CIRCUIT_BREAKER_OPEN_DURATION_MS",
    "CIRCUIT_BREAKER_PERSIST_TO_REDIS",
]


def test_all_variables_of_the_original_are_read_with_its_defaults():
    assert set(ORIGINAL) <= {each.name for each in DECLARED}
    found = settings_of({})
    assert (found.concurrency, found.attempts, found.job_timeout_ms) == (5, 7, 600_000)
    assert (found.limiter_enabled, found.base_delay_ms, found.max_delay_ms) == (True, 3000, 300_000)
    assert (found.jitter_percent, found.success_factor, found.failure_factor) == (20, 0.9, 2.0)
    assert (found.breaker_enabled, found.breaker_threshold, found.breaker_open_ms) == (True, 3, 300_000)
    assert (found.breaker_in_redis, found.s3_region, found.health_port) == (True, "auto", 8000)
    assert (found.health_enabled, found.health_host) == (True, "127.0.0.1")


def test_with_nothing_set_it_starts_and_says_that_all_is_simulated():
    found = settings_of({})
    assert found.database_url.startswith("sqlite:")
    assert (found.redis_url, found.is_simulated, found.is_production) == (None, True, False)


@pytest.mark.parametrize("told", NUMBERS, ids=lambda each: each.name)
def test_numbers_are_refused_with_name_value_and_range(told):
    high = 1e15 if told.high is None else told.high
    for value in ("many", "-1", "nan", f"{told.low - 1:.0f}", f"{high * 2 + 1:.0f}"):
        if value == f"{high * 2 + 1:.0f}" and told.high is None:
            continue
        with pytest.raises(WrongSettings) as error:
            settings_of({told.name: value})
        line = str(error.value)
        assert told.name in line
        assert value in line
    below = next((text for text in ("0", "-1") if float(text) < told.low), None)
    with pytest.raises(WrongSettings, match=f"{told.low:g}|small"):
        settings_of({told.name: below})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DATABASE_URL", "mysql://a:secret@db/x", "db/x"),
        ("REDIS_URL", "http://cache", "http://cache"),
        ("PUBLISHER_PUBLIC_URL", "publisher.example.org", "https://"),
        ("DEVIANTART_BASE_URL", "deviantart.com", "deviantart.com"),
        ("S3_ENDPOINT", "minio:9000", "minio:9000"),
        ("SMTP_URL", "mail.example.org", "mail.example.org"),
        ("SMTP_URL", "smtp://", "no host"),
        ("SMTP_FROM", "nobody", "nobody"),
        ("PUBLISHER_KEYS", "garbage", "no id before a colon"),
        ("PUBLISHER_PROXIES", "10.0.0.0/8, here", "'here'"),
        ("PUBLISHER_ENV", "prod", "'prod'"),
        ("HEALTH_CHECK_ENABLED", "maybe", "maybe"),
        ("RATE_LIMITER_MAX_DELAY_MS", "2999", "RATE_LIMITER_BASE_DELAY_MS=3000"),
        ("S3_ACCESS_KEY_ID", "abc", "S3_SECRET_ACCESS_KEY"),
        ("PUBLISHER_CONCURENCY", "5", "PUBLISHER_CONCURRENCY is the nearest"),
        ("S3_PREFIX", "a", "S3_PATH_PREFIX is the nearest"),
    ],
)
def test_what_is_no_number_is_refused_by_name(name, value, says):
    with pytest.raises(WrongSettings) as error:
        settings_of({name: value})
    assert name in str(error.value)
    assert says in str(error.value)
    assert "secret@" not in str(error.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(WrongSettings) as error:
        settings_of({"PUBLISHER_CONCURRENCY": "0", "RATE_LIMITER_JITTER_PERCENT": "200", "S3_BUCKET": "x"})
    assert str(error.value).count("\n") == 3


def test_unknown_names_are_looked_for_below_all_our_prefixes():
    assert all(
        any(name.startswith(prefix) for prefix in PREFIXES)
        for name in ORIGINAL
        if "_" in name[3:] and name not in ("DATABASE_URL", "REDIS_URL", "NODE_ENV")
    )
    assert settings_of({"HOME": "/root", "PATH": "/bin"}) == settings_of({})


@pytest.mark.parametrize("name", ["PUBLISHER_ENV", "NODE_ENV"])
def test_production_refuses_what_is_for_trying_out(name):
    with pytest.raises(WrongSettings) as error:
        settings_of({name: "production"})
    for needed in ("DEVIANTART_CLIENT_SECRET", "PUBLISHER_KEYS", "PUBLISHER_PUBLIC_URL", "SMTP_URL"):
        assert needed in str(error.value)


def test_files_are_in_a_folder_a_bucket_of_aws_or_one_of_an_endpoint():
    """P69: an endpoint alone is never guessed to be something, and none means AWS."""
    bucket = {"S3_BUCKET_NAME": "art", "S3_PATH_PREFIX": "/live/"}
    assert settings_of({}).blobs().url == "file:publisher-files"
    assert (
        settings_of(bucket | {"S3_REGION": "eu-central-2"}).blobs().url == "s3://art/live?region=eu-central-2"
    )
    minio = settings_of(bucket | {"S3_ENDPOINT": "https://minio.example.org:9000"}).blobs()
    assert minio.url == "s3://art/live?region=auto&endpoint=https://minio.example.org:9000"
    with pytest.raises(WrongSettings, match="S3_BUCKET_NAME"):
        settings_of({"S3_ENDPOINT": "https://minio.example.org:9000"})


def test_keys_of_the_vault_are_read_by_the_first_and_the_older_ones():
    found = settings_of({"PUBLISHER_KEYS": f"{new_key('new')},{new_key('old')}"})
    assert found.keys is not None
    with pytest.raises(UsageError, match="PUBLISHER_KEYS"):
        settings_of({"PUBLISHER_KEYS": "new:short"})


def test_the_page_of_settings_has_every_variable():
    text = (Path(core.__file__).parents[1] / "docs/settings.md").read_text()
    missing = [each.name for each in DECLARED if f"`{each.name}`" not in text]
    assert not missing
