"""What a worker opens once: the client of DeviantArt."""

from __future__ import annotations

from collections.abc import AsyncIterator

from publisher.core import hf, settings
from publisher.outside.deviantart import DeviantArt


@hf.resource
async def site() -> AsyncIterator[DeviantArt]:
    async with DeviantArt.open(settings.deviantart_url, settings.call_timeout_s) as opened:
        yield opened
