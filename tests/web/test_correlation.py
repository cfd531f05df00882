"""Correlation: one id from the request to its jobs, events, log lines and its answer."""

from __future__ import annotations

import pytest
from edge import client, orders

from holdfast.guards import time_left
from holdfast.kernel.context import context
from holdfast.web import Correlation, Problems

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def shows(scope, receive, send):
    found = context()
    body = f"{found.correlation_id} {found.trace} {time_left()}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def test_an_id_of_the_client_is_taken_and_told():
    async with client(Correlation(shows)) as http:
        answer = await http.get("/", headers={"X-Correlation-Id": "request-7", "traceparent": TRACE})
    assert answer.headers["x-correlation-id"] == "request-7"
    assert answer.text == f"request-7 {TRACE} None"
    assert context().correlation_id is None


@pytest.mark.parametrize("bad", ["", "a b", "a\tb", "x" * 65, "ä", "a;drop", "../../x"])
async def test_an_id_that_may_harm_is_replaced(bad):
    async with client(Correlation(shows)) as http:
        answer = await http.get("/", headers={"X-Correlation-Id": bad.encode()})
    assert answer.headers["x-correlation-id"] != bad
    assert answer.text.startswith(answer.headers["x-correlation-id"])


@pytest.mark.parametrize(
    "bad",
    ["x", TRACE + "0", TRACE.replace("00-", "ff-", 1), "00-" + "0" * 32 + TRACE[35:], TRACE.upper()],
)
async def test_a_trace_that_is_none_is_replaced(bad):
    async with client(Correlation(shows)) as http:
        answer = await http.get("/", headers={"traceparent": bad})
    trace = answer.text.split()[1]
    assert trace != bad
    assert len(trace) == 55


async def test_a_deadline_is_obeyed_and_bounded():
    async with client(Correlation(shows, longest=60)) as http:
        near = await http.get("/", headers={"Holdfast-Deadline": "5"})
        far = await http.get("/", headers={"Holdfast-Deadline": "5000"})
    assert 4 < float(near.text.split()[2]) <= 5
    assert 59 < float(far.text.split()[2]) <= 60


async def test_a_deadline_of_the_public_may_be_ignored():
    async with client(Correlation(shows, deadline=False)) as http:
        assert (await http.get("/", headers={"Holdfast-Deadline": "5"})).text.endswith("None")


async def test_jobs_and_events_belong_to_the_story(shop):
    async with client(Correlation(shop.app())) as http:
        await http.post("/orders", json={"id": 1}, headers={"X-Correlation-Id": "request-7"})
    assert await orders(shop.hf) == [1]
    [job] = await shop.hf.store.jobs.find(correlation_id="request-7")
    assert job.task == "shop.ship"
    [event] = await shop.hf.store.outbox.find(correlation_id="request-7")
    assert event.type == "order.placed"


async def test_a_problem_tells_the_id():
    async def broken(scope, receive, send):
        raise RuntimeError

    async with client(Correlation(Problems(broken))) as http:
        answer = await http.get("/", headers={"X-Correlation-Id": "request-7"})
    assert answer.json()["correlation_id"] == "request-7"
