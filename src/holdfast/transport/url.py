"""From a URL to the transport that it names: `redis://…` or `nats://…`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.transport.port import Transport

# scheme: the module, its class, and the extra that brings its driver
_REDIS = ("holdfast.transport.redis", "RedisTransport", "redis")
_NATS = ("holdfast.transport.nats", "NatsTransport", "nats")
_ADAPTERS = {"redis": _REDIS, "rediss": _REDIS, "unix": _REDIS, "nats": _NATS, "tls": _NATS}


def open_transport(url: Any) -> Transport:
    """The transport of this URL, checked and not connected yet: call its `open()` for that."""
    if not isinstance(url, str):
        raise UsageError(f"The URL of a transport is text, not {show(url)} ({type(url).__name__}).")
    scheme, colon, _ = url.partition("://")
    if not colon or scheme not in _ADAPTERS:
        raise UsageError(
            f"The URL of a transport begins with {', '.join(f'{name}://' for name in _ADAPTERS)}; "
            f"got {show(scheme if colon else 'one without ://')}. Without a transport everything goes through the store itself."
        )
    module, name, extra = _ADAPTERS[scheme]
    try:
        adapter = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("holdfast"):
            raise
        raise UsageError(
            f"A transport to {scheme}:// needs a driver that is not installed ({error.name}): "
            f"pip install holdfast[{extra}]"
        ) from error
    transport: Transport = adapter(url)
    return transport
