"""Where blobs are kept is said by the URL alone; what is wrong with it is said at the start."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.blobs import BlobSettings, open_blobs
from holdfast.blobs.settings import Bucket, Folder, place, settings_of
from holdfast.blobs.sigv4 import Account, presign
from holdfast.errors import UsageError

KEYS = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "shh"}


def found(url, environment=KEYS, **more):
    return place(BlobSettings(url=url, **more), environment)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:blobs", "blobs"),
        ("file:///var/blobs", "/var/blobs"),
        ("file:a%20b", "a b"),
        ("file:/var/x/", "/var/x"),
    ],
)
def test_folders(url, path):
    assert found(url) == Folder(path)


def test_no_endpoint_means_aws():
    bucket = found("s3://shop/files?region=eu-central-1")
    assert isinstance(bucket, Bucket)
    assert (bucket.endpoint, bucket.base) == (
        "https://s3.eu-central-1.amazonaws.com",
        "https://shop.s3.eu-central-1.amazonaws.com",
    )
    assert (bucket.prefix, bucket.access_key, bucket.secret_key) == ("files", "AKIA", "shh")


def test_an_endpoint_alone_is_enough():
    minio = found("s3://shop?endpoint=https://minio.example.org:9000")
    assert (minio.base, minio.region) == ("https://minio.example.org:9000/shop", "us-east-1")
    r2 = found("s3://shop?endpoint=https://acc.r2.cloudflarestorage.com&region=auto")
    assert (r2.base, r2.region) == ("https://acc.r2.cloudflarestorage.com/shop", "auto")
    virtual = found("s3://shop?endpoint=https://s3.example.org&style=virtual")
    assert virtual.base == "https://shop.s3.example.org"


def test_no_other_variable_leads_elsewhere(monkeypatch):
    """The library below would take these by itself."""
    for name, value in {
        **KEYS,
        "AWS_ENDPOINT": "https://evil.example.org",
        "AWS_ENDPOINT_URL": "https://evil.example.org",
    }.items():
        monkeypatch.setenv(name, value)
    store = open_blobs(BlobSettings(url="s3://shop?region=eu-west-1"))
    assert "evil" not in repr(store._place().config)
    assert store._place().config["endpoint"] == "https://shop.s3.eu-west-1.amazonaws.com"


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("http://shop", "'http'"),
        ("shop", "'shop'"),
        ("file:", "names no folder"),
        ("file://host/x", "names no folder"),
        ("s3://", "no bucket"),
        ("s3://shop:9000", "cannot be read|too much"),
        ("s3://shop?endpoint=minio:9000", "endpoint is the address"),
        ("s3://shop?endpoint=https://minio/bucket", "endpoint is the address"),
        ("s3://shop?endpoint=http://minio.example.org", "where all can read"),
        ("s3://shop?acl=public", "'acl'"),
        ("s3://shop?style=dns", "'dns'"),
        ("s3://shop/../x", "prefix"),
    ],
)
def test_what_is_wrong_is_said(url, word):
    with pytest.raises(UsageError, match=word):
        found(url)


def test_half_an_account_is_refused():
    with pytest.raises(UsageError, match="without a secret key"):
        found("s3://shop", {"AWS_ACCESS_KEY_ID": "AKIA"})


@pytest.mark.parametrize(
    "wrong", [{"most": 0}, {"links": 0.5}, {"unused": 60}, {"restorable": 1}, {"attempts": 0}, {"queue": ""}]
)
def test_numbers_have_their_ranges(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        BlobSettings(url="file:x", **wrong)


def test_secrets_are_not_printed():
    settings = BlobSettings(url="s3://AKIA:s3cr3t@shop?endpoint=https://minio.example.org")
    for shown in (
        repr(settings),
        repr(place(settings)),
        repr(open_blobs(settings)),
        repr(Account("a", "s3cr3t", None, "x")),
    ):
        assert "s3cr3t" not in shown


def test_the_environment_says_where():
    assert settings_of(None, {}) is None
    settings = settings_of(
        None, {"HOLDFAST_BLOBS_URL": "file:x", "HOLDFAST_BLOBS_PUBLIC": "https://shop.example.org/files"}
    )
    assert settings is not None
    assert (settings.url, settings.public) == ("file:x", "https://shop.example.org/files")
    assert settings_of("file:y", {"HOLDFAST_BLOBS_URL": "file:x"}).url == "file:y"


def test_a_link_is_the_one_of_the_documentation():
    """The example that AWS publishes for presigned URLs."""
    account = Account("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None, "us-east-1")
    url = presign(
        account,
        "GET",
        "https://examplebucket.s3.amazonaws.com/test.txt",
        {},
        expires=86400,
        moment=1369353600.0,
    )
    asked = parse_qs(urlsplit(url).query)
    assert asked["X-Amz-Signature"] == ["aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"]
