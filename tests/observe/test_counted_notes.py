"""What guards, the inbox and the edge say is counted."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from metrics_kit import check_with_promtool, scraped
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from holdfast.guards import Limiter
from holdfast.kernel.notes import NOTES
from holdfast.kernel.telemetry import note
from holdfast.observe import metrics
from holdfast.observe.metrics.notes import HEARD
from holdfast.web import IdempotencyKeys

pytestmark = pytest.mark.usefixtures("counting")


async def test_calls_that_wait_for_a_limiter(hf):
    app = metrics(hf)
    guard = hf.guard("stripe", limiter=Limiter(rate=20, burst=1))

    async def call():
        return 1

    await asyncio.gather(*(guard.call(call) for _ in range(3)))
    found = await scraped(app)
    # the first may wait, too, for the quota of the fleet
    assert found("holdfast_limiter_wait_seconds_count", guard="stripe") in (2, 3)
    assert 0.05 < found("holdfast_limiter_wait_seconds_sum", guard="stripe") < 5


async def test_requests_that_are_answered_again(hf):
    async def place(request):
        return PlainTextResponse("placed")

    app = metrics(hf)
    shop = IdempotencyKeys(Starlette(routes=[Route("/orders", place, methods=["POST"])]), hf)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(shop), base_url="http://shop.test") as client:
        for body in ("a", "a", "a", "b"):
            await client.post("/orders", content=body, headers={"Idempotency-Key": '"first"'})
    found = await scraped(app)
    assert found("holdfast_idempotency_requests_total", what="replayed") == 2
    assert found("holdfast_idempotency_requests_total", what="mismatched") == 1


async def test_each_note_that_is_heard_is_counted_from_its_fields(hf):
    app = metrics(hf)
    numbers = {"seconds", "count", "again", "jobs"}
    for name in HEARD:
        note(name, **{field: 2 if field in numbers else "one" for field in NOTES[name].fields})
    found = await scraped(app)
    assert found("holdfast_inbox_duplicates_total", group="one") == 2
    assert found("holdfast_jobs_rescued_total", task="one", state="one") == 1
    assert found("holdfast_breaker_changes_total", guard="one", state="open") == 1
    assert found("holdfast_sagas_ended_total", saga="one", state="one") == 1
    check_with_promtool(found.text)
