"""A URL names its transport; what is wrong with it, or not installed, is told with what to do."""

from __future__ import annotations

import re
import sys

import pytest

from holdfast.kernel.errors import UsageError
from holdfast.transport.nats import NatsTransport
from holdfast.transport.redis import RedisTransport
from holdfast.transport.url import open_transport


@pytest.mark.parametrize(
    ("url", "kind", "shown"),
    [
        ("redis://localhost", RedisTransport, "RedisTransport('redis://localhost', topic='holdfast:events')"),
        ("rediss://:s3cret@r.example/1?topic=t", RedisTransport, "RedisTransport('rediss://:***@r.example/1', topic='t')"),
        ("unix:///run/redis.sock", RedisTransport, "RedisTransport('unix:///run/redis.sock', topic='holdfast:events')"),
        ("nats://localhost", NatsTransport, "NatsTransport('nats://localhost', topic='holdfast.events')"),
        ("nats://ada:s3cret@a:1,b:2?topic=t", NatsTransport, "NatsTransport('nats://ada:***@a:1,b:2', topic='t')"),
        ("tls://s3cret@n.example", NatsTransport, "NatsTransport('tls://***@n.example', topic='holdfast.events')"),
    ],
)  # fmt: skip
def test_a_url_names_its_transport(url, kind, shown):
    transport = open_transport(url)
    assert type(transport) is kind
    assert repr(transport) == shown


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "one without ://"),
        ("localhost:6379", "one without ://"),
        ("kafka://localhost", "'kafka'"),
        ("postgresql://ada:s3cret@db/shop", "goes through the store itself"),
        (None, "is text"),
    ],
)
def test_what_names_none_is_told(url, words):
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        open_transport(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(("url", "driver"), [("redis://localhost", "redis"), ("nats://localhost", "nats")])
def test_a_missing_driver_is_told(url, driver, monkeypatch):
    for name in [
        name
        for name in sys.modules
        if name.startswith(("holdfast.transport.redis", "holdfast.transport.nats"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(UsageError, match=re.escape(f"pip install holdfast[{driver}]")):
        open_transport(url)
