"""Run a script on a Redis, in one round trip and in a bounded time, and say in our words what went wrong."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import redis.asyncio as driver
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from holdfast.fleet.redis_scripts import Script
from holdfast.kernel.clock import patience
from holdfast.kernel.errors import (
    HoldfastError,
    NotOpen,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnsupportedStore,
    UsageError,
)
from holdfast.kernel.forks import tell_child
from holdfast.kernel.masking import hide
from holdfast.transport.inherited import leave_redis
from holdfast.transport.redis_moved import look_again
from holdfast.transport.redis_url import Target

ANSWER = 1.0  # seconds for connecting, and for an answer
PATIENCE = 2.0  # seconds for all of a call: a connection, the script, and its text when that is not known
_CONNECTIONS = 8
_FAILURES = (exceptions.RedisError, OSError, TimeoutError, UnicodeError)  # the last: a host that is no name
_LATER = ("NOREPLICAS", "BUSY", "UNKILLABLE", "MISCONF")
_IS_CLUSTER = "{where} is a cluster{detail}. Give the URL of a single Redis."
_MEANINGS: tuple[tuple[type[BaseException], type[StoreError], str], ...] = (
    (
        exceptions.AuthenticationError,
        StoreUnavailable,
        "{where} refuses the user or the password of its URL{detail}.",
    ),
    (exceptions.ReadOnlyError, StoreReadOnly, "{where} accepts no writes now{detail}. Nothing was done."),
    (exceptions.OutOfMemoryError, StoreFull, "{where} has no memory left{detail}. Nothing was done."),
    (exceptions.NoPermissionError, StoreError, "{where} does not allow its user what is needed{detail}."),
    (exceptions.TimeoutError, StoreUnavailable, "{where} did not answer in time{detail}. It may do it yet."),
    (TimeoutError, StoreUnavailable, "{where} did not answer in time{detail}. It may do it yet."),
    (exceptions.AskError, UnsupportedStore, _IS_CLUSTER),
    (exceptions.ClusterCrossSlotError, UnsupportedStore, _IS_CLUSTER),
    (exceptions.ClusterError, UnsupportedStore, _IS_CLUSTER),
    (exceptions.MasterDownError, StoreUnavailable, "{where} has lost its primary{detail}."),
)


class Server:
    """Connections of one event loop of one process. None is made before it is needed, and a broken one is made anew."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._client: driver.Redis | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    async def open(self) -> None:
        """Raises when nothing answers; the verbs may be used all the same, and work when it is there."""
        if self._client is None or self._is_forsaken():
            self._client, self._loop, self._process = (
                _client(self._target),
                asyncio.get_running_loop(),
                os.getpid(),
            )
        await self._in_time(self._here().ping())
        tell_child(self)

    def forked(self) -> None:
        """A child of the process makes connections of its own."""
        leave_redis(self._client)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None and not self._is_forsaken():
            with suppress(*_FAILURES):
                async with patience(ANSWER):
                    await client.aclose(close_connection_pool=True)

    def _is_forsaken(self) -> bool:
        """Whether the connections are of a loop that has ended, or of the process that forked this one."""
        return self._process != os.getpid() or self._loop is None or self._loop.is_closed()

    def _here(self) -> driver.Redis:
        if self._client is None:
            raise NotOpen("The connection to Redis is not open. Call open() first.")
        if self._process != os.getpid():
            raise NotOpen(
                "The connection to Redis was opened before this process was forked, and belongs to the parent. "
                "Open one in each process, after the fork."
            )
        if asyncio.get_running_loop() is not self._loop:
            raise UsageError(
                "The connection to Redis was opened in another event loop, and belongs to that one. "
                "Open one in each event loop."
            )
        return self._client

    async def run(self, script: Script, keys: Sequence[str], args: Sequence[bytes | str]) -> bytes:
        answer = await self._in_time(_run(self._here(), script, keys, args))
        if not isinstance(answer, bytes):
            raise StoreError(f"Redis at {self._target.shown} gave an answer that is none: {answer!r}.")
        return answer

    async def _in_time(self, work: Any) -> Any:
        try:
            async with patience(PATIENCE):
                return await work
        except _FAILURES as error:
            await look_again(self._client, error)
            raise self._translated(error) from error

    def _translated(self, error: BaseException) -> HoldfastError:
        """The same failure in Holdfast's words. What was sent may have been done: no answer tells."""
        text = hide(str(error), [self._target.password] if self._target.password else [])
        where, detail = f"Redis at {self._target.shown}", f" ({text})" if text else ""
        for kind, meaning, message in _MEANINGS:
            if isinstance(error, kind):
                return meaning(message.format(where=where, detail=detail))
        if isinstance(error, exceptions.ResponseError):
            return _refused(where, text)
        return StoreUnavailable(f"{where} cannot be reached{detail}.")


def _refused(where: str, text: str) -> HoldfastError:
    if "READONLY" in text:  # before Redis 7 a script's error has another error around it
        return StoreReadOnly(f"{where} accepts no writes now ({text}). Nothing was done.")
    if "OOM command" in text:
        return StoreFull(f"{where} has no memory left ({text}). Nothing was done.")
    if "NOAUTH" in text or "WRONGPASS" in text:
        return StoreUnavailable(f"{where} asks for a user or a password ({text}). Put them into its URL.")
    if text.startswith(_LATER):
        return StoreUnavailable(f"{where} could not do it now ({text}).")
    return StoreError(f"{where} refused: {text}.")


def _client(target: Target) -> driver.Redis:
    pool = driver.BlockingConnectionPool(
        max_connections=_CONNECTIONS,
        timeout=ANSWER,
        connection_class=target.kind,
        socket_timeout=ANSWER,
        socket_connect_timeout=ANSWER,
        retry=Retry(NoBackoff(), 0),  # whoever asks decides whether to ask again
        protocol=2,
        client_name="holdfast",
        **target.options,
    )
    return driver.Redis(connection_pool=pool)


async def _run(client: Any, script: Script, keys: Sequence[str], args: Sequence[bytes | str]) -> Any:
    try:
        return await client.execute_command("EVALSHA", script.digest, len(keys), *keys, *args)
    except exceptions.NoScriptError:  # a new server, or SCRIPT FLUSH: nothing was done
        return await client.execute_command("EVAL", script.text, len(keys), *keys, *args)
