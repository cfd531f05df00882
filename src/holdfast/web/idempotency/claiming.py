"""Claim a key in the handler's own transaction: as the first thing in it, so that the claim commits with the answer or was never there."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from holdfast.kernel.clock import monotonic, timeout
from holdfast.store.fleet_ports import Keys
from holdfast.store.idempotency import KeyBusy, KeyClaim, KeyDone, KeyMismatch
from holdfast.web.idempotency.flights import Asked

Elsewhere: TypeAlias = KeyDone | KeyBusy | KeyMismatch  # what is known of a key that another has, or had
_LEAST = 1.0  # seconds: the database may be slow, and nobody in the way


class Claiming:
    """`until`: so long it waits for another transaction that has the key."""

    def __init__(self, keys: Keys, asked: Asked, *, lease: float, until: float) -> None:
        self._keys, self._asked, self._lease, self._until = keys, asked, lease, until

    async def enter(
        self, block: AbstractAsyncContextManager[Any], *, is_session: bool
    ) -> tuple[Any, KeyClaim | Elsewhere]:
        """What is written with, and what is known of the key. The block has begun, unless this raises."""
        asked, wait = self._asked, max(_LEAST, self._until - monotonic())
        if is_session:
            return await self._enter_session(block, wait)
        tx: Any = block  # a transaction of the store is its own block
        return tx, await self._keys.enter(
            tx, asked.scope, asked.key, fingerprint=asked.fingerprint, lease=self._lease, wait=wait
        )

    async def _enter_session(
        self, block: AbstractAsyncContextManager[Any], wait: float
    ) -> tuple[Any, KeyClaim | Elsewhere]:
        asked, session = self._asked, await block.__aenter__()
        try:
            async with timeout(wait):
                found = await self._keys.begin(
                    asked.scope, asked.key, fingerprint=asked.fingerprint, lease=self._lease, tx=session
                )
        except TimeoutError:
            return session, KeyBusy(0.0)
        except BaseException as error:
            await block.__aexit__(type(error), error, error.__traceback__)
            raise
        return session, found
