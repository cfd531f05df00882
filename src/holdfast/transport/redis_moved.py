"""After a fail-over the address of a Redis leads to another server, and the old one may live on as its replica."""

from __future__ import annotations

from contextlib import suppress

import redis.asyncio as driver
from redis import exceptions

from holdfast.kernel.clock import patience

_SECONDS = 1.0
_WORDS = ("READONLY", "NOREPLICAS")


async def look_again(client: driver.Redis | None, error: BaseException) -> None:
    """Hang up on a server that is the primary no more: it hangs up on nobody, and would refuse every write from now on.

    The next call connects anew, to whomever the address names then.
    """
    if client is None or not _is_demoted(error):
        return
    with suppress(exceptions.RedisError, OSError, TimeoutError):
        async with patience(_SECONDS):
            await client.connection_pool.disconnect(inuse_connections=False)


def _is_demoted(error: BaseException) -> bool:
    if isinstance(error, exceptions.ReadOnlyError | exceptions.MasterDownError):
        return True
    # Before Redis 7 a script's error has another error around it.
    return isinstance(error, exceptions.ResponseError) and any(word in str(error) for word in _WORDS)
