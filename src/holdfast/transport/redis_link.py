"""Connections to a Redis for one event loop of one process: every call in a bounded time, its failures in our words."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable
from contextlib import suppress
from importlib.resources import files
from typing import Any, TypeVar

import redis.asyncio as driver
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript

from holdfast.kernel.clock import patience
from holdfast.kernel.errors import NotOpen, TransportUnavailable, UsageError
from holdfast.kernel.forks import tell_child
from holdfast.kernel.masking import hide
from holdfast.transport.inherited import leave_redis
from holdfast.transport.redis_moved import look_again
from holdfast.transport.redis_url import Target

T = TypeVar("T")

FAILURES = (exceptions.RedisError, OSError, TimeoutError, UnicodeError)  # the last: a host that is no name
_FAREWELL = 1.0  # seconds for closing
_MANY = (
    2**31
)  # connections: each group that waits has one, and with a limit many groups would leave none to publish by
_IN_A_BATCH = re.compile(r"Command # .* of pipeline caused error: \(['\"](.*)['\"],?\)", re.DOTALL)
_CLUSTER = "{where} is a cluster{detail}. Give the URL of a single Redis."
_MEANINGS: tuple[tuple[type[BaseException], str], ...] = (
    (exceptions.AuthenticationError, "{where} refuses the user or the password of its URL{detail}."),
    (exceptions.ReadOnlyError, "{where} accepts no writes now{detail}: a replica, most often."),
    (exceptions.OutOfMemoryError, "{where} has no memory left{detail}. Trim it, or raise its maxmemory."),
    (exceptions.NoPermissionError, "{where} does not allow its user what is needed{detail}."),
    (exceptions.BusyLoadingError, "{where} still loads its data{detail}."),
    (exceptions.TimeoutError, "{where} did not answer in time{detail}."),
    (TimeoutError, "{where} did not answer in time{detail}."),
    (exceptions.AskError, _CLUSTER),
    (exceptions.ClusterError, _CLUSTER),
    (exceptions.MasterDownError, "{where} has lost its primary{detail}."),
)


class Link:
    """No connection is made before it is needed, and a broken one is made anew."""

    def __init__(self, target: Target, *, patience: float) -> None:
        self.shown = target.shown
        self.patience = patience  # seconds for an answer
        self._target = target
        self._client: driver.Redis | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._scripts: dict[str, AsyncScript] = {}
        tell_child(self)

    def forked(self) -> None:
        """A child of the process makes connections of its own."""
        leave_redis(self._client)

    def open(self) -> None:
        if self._client is None or self._is_forsaken():
            self._client, self._process = _client(self._target), os.getpid()
            self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None and not self._is_forsaken():
            with suppress(*FAILURES):
                async with patience(_FAREWELL):
                    await client.aclose(close_connection_pool=True)

    def _is_forsaken(self) -> bool:
        """Whether the connections are of a loop that has ended, or of the process that forked this one."""
        return self._process != os.getpid() or self._loop is None or self._loop.is_closed()

    @property
    def client(self) -> driver.Redis:
        if self._client is None:
            raise NotOpen(f"The transport to Redis at {self.shown} is not open. Call open() first.")
        if self._process != os.getpid():
            raise NotOpen(
                "The transport was opened before this process was forked, and belongs to the parent. "
                "Open one in each process, after the fork."
            )
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                "The transport was opened in another event loop, and belongs to that one. Open one in each."
            )
        return self._client

    async def call(self, *command: Any, longer: float = 0.0) -> Any:
        """One command. `longer`: seconds for which the server itself waits."""
        client: Any = self.client
        return await self.in_time(client.execute_command(*command), longer=longer)

    async def run(self, name: str, key: str, *args: Any) -> Any:
        """A script of the folder `lua`."""
        client = self.client
        made = self._scripts.get(name)
        if made is None:
            text = files("holdfast.transport").joinpath("lua", f"{name}.lua").read_text()
            made = self._scripts[name] = client.register_script(text)
        return await self.in_time(made(keys=[key], args=list(args), client=client))

    async def in_time(self, work: Awaitable[T], *, longer: float = 0.0) -> T:
        """Whoever gives up a call gives up its connection too: no late answer is taken for that of another."""
        try:
            async with patience(self.patience + longer):
                return await work
        except FAILURES as error:
            await look_again(self._client, error)
            raise self.translated(error) from error

    def translated(self, error: BaseException) -> Exception:
        """The same failure in Holdfast's words. What was sent may have been done: no answer tells."""
        text = hide(_said(error), [self._target.password] if self._target.password else [])
        where, detail = f"Redis at {self.shown}", f" ({text})" if text else ""
        for kind, message in _MEANINGS:
            if isinstance(error, kind):
                return TransportUnavailable(message.format(where=where, detail=detail))
        if isinstance(error, exceptions.ResponseError):
            return _refused(where, text)
        return TransportUnavailable(f"{where} cannot be reached{detail}.")


def _said(error: BaseException) -> str:
    """By the server alone: around it the driver puts the beginning of the command, with data of the event."""
    text = str(error)
    found = _IN_A_BATCH.fullmatch(text)
    return text if found is None else found[1]


class GroupMissing(TransportUnavailable):
    """The stream or the group is gone: flushed, deleted, or lost in a restart. It is made again."""


def _refused(where: str, text: str) -> Exception:
    if "NOGROUP" in text or text.startswith("UNBLOCKED"):
        return GroupMissing(f"{where} has lost the group ({text}).")
    if "WRONGTYPE" in text:
        return TransportUnavailable(
            f"{where} keeps something under this key that is no stream ({text}). Give the URL another ?topic=."
        )
    if "READONLY" in text:
        return TransportUnavailable(f"{where} accepts no writes now ({text}): a replica, most often.")
    if "NOAUTH" in text or "WRONGPASS" in text:
        return TransportUnavailable(f"{where} asks for a user or a password ({text}). Put them into its URL.")
    if "unknown command" in text.lower():
        return TransportUnavailable(f"{where} is too old ({text}): Redis 6.2 or newer is needed, or Valkey.")
    return TransportUnavailable(f"{where} could not do it ({text}).")


def _client(target: Target) -> driver.Redis:
    pool = driver.ConnectionPool(
        connection_class=target.kind,
        max_connections=_MANY,
        socket_timeout=None,  # a read may wait for messages; `in_time` bounds every call
        retry=Retry(NoBackoff(), 0),  # whoever asks decides whether to ask again
        protocol=2,
        client_name="holdfast",
        **target.options,
    )
    return driver.Redis(connection_pool=pool)
