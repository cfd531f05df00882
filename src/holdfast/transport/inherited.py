"""Connections to brokers that a forked child has of its parent: they are taken away from it, and left as they are."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.forks import disown, keep


def leave_redis(client: Any) -> None:
    """A client of redis-py closes what is collected, and with it would take the parent's socket from the parent's loop."""
    if client is not None:
        pool = client.connection_pool
        connections = [*pool._available_connections, *pool._in_use_connections]  # noqa: SLF001  shown nowhere else
        disown(*(each._writer for each in connections))  # noqa: SLF001  as above
        keep([client, *connections])


def leave_nats(client: Any) -> None:
    """As above, for a client of nats-py."""
    if client is not None:
        disown(getattr(client._transport, "_bare_io_writer", None))  # noqa: SLF001  as above
        keep([client])
