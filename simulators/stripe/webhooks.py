"""Signed webhooks: late, twice, in any order, again while they are not taken, or never."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import random
from typing import Any

import httpx

from simulators.common.clock import Clock
from simulators.common.ledger import Ledger
from simulators.stripe.settings import Settings
from simulators.stripe.state import WEBHOOK_SECRET, State


class Webhooks:
    def __init__(self, state: State, settings: Settings, ledger: Ledger, clock: Clock, seed: int) -> None:
        self._state, self._settings, self._ledger, self._clock = state, settings, ledger, clock
        self._chance = random.Random(seed)
        self._tasks: set[asyncio.Task[None]] = set()

    def made(self, kind: str, thing: dict[str, Any], request: str, key: str | None) -> dict[str, Any]:
        event = {
            "id": self._state.new_id("evt"),
            "object": "event",
            "api_version": "2026-10-28.endive",
            "created": int(self._clock.now()),
            "type": kind,
            "data": {"object": thing},
            "livemode": False,
            "pending_webhooks": 1,
            "request": {"id": request, "idempotency_key": key},
        }
        self._state.events.append(event)
        return event

    def send(self, events: list[dict[str, Any]]) -> None:
        if self._settings.webhook_off or not self._settings.webhook_url:
            return
        copies = [event for event in events for _ in range(self._settings.webhook_copies)]
        if self._settings.webhook_shuffle:
            self._chance.shuffle(copies)
        for event in copies:
            task = asyncio.get_running_loop().create_task(self._sent(event))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _sent(self, event: dict[str, Any]) -> None:
        """Until it is taken, or has been tried often enough."""
        shuffled = self._chance.random() if self._settings.webhook_shuffle else 0.0
        await asyncio.sleep(self._settings.webhook_delay + shuffled)
        pause = self._settings.webhook_pause
        async with httpx.AsyncClient(trust_env=False, timeout=10.0) as client:
            for _ in range(self._settings.webhook_tries):
                status = await self._once(client, event)
                self._ledger.add(
                    "webhook", id=event["id"], type=event["type"], status=status, at=self._clock.now()
                )
                if 200 <= status < 300:
                    return
                await asyncio.sleep(pause)
                pause *= 2

    async def _once(self, client: httpx.AsyncClient, event: dict[str, Any]) -> int:
        """The status of the answer; 0 when there is none."""
        body = json.dumps(event).encode()
        headers = {
            "Content-Type": "application/json",
            "Stripe-Signature": signature(body, int(self._clock.now())),
        }
        try:
            return (await client.post(self._settings.webhook_url, content=body, headers=headers)).status_code
        except httpx.HTTPError:
            return 0


def signature(body: bytes, at: int, secret: str = WEBHOOK_SECRET) -> str:
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"
