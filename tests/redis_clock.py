"""The clock of a Redis server: what expires there does so by it, however slow the machine of the test is."""

from __future__ import annotations


async def server_time(raw) -> float:
    """Seconds since 1970, by the server."""
    seconds, microseconds = await raw.time()
    return seconds + microseconds / 1_000_000


async def lasted(raw, key, since: float) -> float:
    """For how many seconds a key was set to last by who has set it since then; a little more when that took long."""
    return await raw.pttl(key) / 1000 + await server_time(raw) - since
