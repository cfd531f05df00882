"""Keys that are claimed in the handler's own transaction: who comes second waits there, and a handler that died leaves nothing."""

from __future__ import annotations

import asyncio

import pytest
from edge import KEY, client, orders
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from holdfast.store.idempotency import KeyClaim, KeyScope
from holdfast.web import IdempotencyKeys, request_session, request_tx

SCOPE = KeyScope("", "", "POST /orders")


class Counter:
    """A handler that stands still in its transaction until the gate opens; `steps` counts what it does before and in it."""

    def __init__(self, hf):
        self.hf, self.before, self.inside = hf, 0, 0
        self.gate, self.entered = asyncio.Event(), asyncio.Event()
        self.statuses = {}  # of what is not accepted, by number

    async def place(self, request):
        self.before += 1
        number = self.before
        async with request_tx(request) as tx:
            self.inside += 1
            await tx.execute("INSERT INTO orders (id) VALUES ($1)", number)
            self.entered.set()
            await self.gate.wait()
        return JSONResponse({"number": number}, self.statuses.get(number, 202))

    def app(self, place=None, **options):
        """Each stands for a process: they share nothing but the database."""
        routes = [Route("/orders", place or self.place, methods=["POST"])]
        return IdempotencyKeys(Starlette(routes=routes), self.hf, one_commit=True, **options)


@pytest.fixture
def counter(shop):
    return Counter(shop.hf)


async def test_the_second_process_waits_in_its_transaction_and_is_told_the_answer(counter):
    async with client(counter.app(wait=30)) as here, client(counter.app(wait=30)) as there:
        first = asyncio.create_task(here.post("/orders", headers=KEY))
        await counter.entered.wait()
        second = asyncio.create_task(there.post("/orders", headers=KEY))
        while counter.before < 2:
            await asyncio.sleep(0.01)
        counter.gate.set()
        answers = [await first, await second]
    assert [answer.content for answer in answers] == [b'{"number":1}'] * 2
    assert ["idempotent-replayed" in answer.headers for answer in answers] == [False, True]
    assert (counter.before, counter.inside) == (2, 1)
    assert await orders(counter.hf) == [1]


async def test_another_body_is_refused_by_the_second_process(counter):
    counter.gate.set()
    async with client(counter.app()) as here, client(counter.app()) as there:
        assert (await here.post("/orders", json=1, headers=KEY)).status_code == 202
        answer = await there.post("/orders", json=2, headers=KEY)
    assert (answer.status_code, answer.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert await orders(counter.hf) == [1]


async def test_after_a_rollback_the_one_who_waited_does_it(counter):
    counter.statuses = {1: 503}
    async with client(counter.app(wait=30)) as here, client(counter.app(wait=30)) as there:
        first = asyncio.create_task(here.post("/orders", headers=KEY))
        await counter.entered.wait()
        second = asyncio.create_task(there.post("/orders", headers=KEY))
        while counter.before < 2:
            await asyncio.sleep(0.01)
        counter.gate.set()
        assert (await first).status_code == 503
        assert (await second).json() == {"number": 2}
        again = await here.post("/orders", headers=KEY)
    assert (again.json(), "idempotent-replayed" in again.headers) == ({"number": 2}, True)
    assert await orders(counter.hf) == [2]


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_who_does_not_wait_long_is_told_to_come_back(counter):
    async with client(counter.app()) as here, client(counter.app(wait=0)) as there:
        first = asyncio.create_task(here.post("/orders", headers=KEY))
        await counter.entered.wait()
        busy = await there.post("/orders", headers=KEY)
        counter.gate.set()
        assert (await first).status_code == 202
    assert (busy.status_code, busy.headers["retry-after"]) == (409, "1")
    assert await orders(counter.hf) == [1]


async def test_a_claim_that_was_made_before_a_handler_is_respected(counter):
    """As while another version of the program is being deployed: the other mode holds the key, and then does not."""
    claim = await counter.hf.store.keys.begin(SCOPE, "first", fingerprint="other", lease=60)
    assert isinstance(claim, KeyClaim)
    counter.gate.set()
    async with client(counter.app(wait=0)) as http:
        assert (await http.post("/orders", headers=KEY)).status_code == 422
        await counter.hf.store.keys.abandon(claim)
        assert (await http.post("/orders", headers=KEY)).status_code == 202


async def test_a_handler_that_never_enters_a_transaction_is_kept_all_the_same(counter):
    async def place(_request):
        counter.before += 1
        return PlainTextResponse(f"run {counter.before}")

    async with client(counter.app(place)) as here, client(counter.app(place)) as there:
        answers = [await http.post("/orders", headers=KEY) for http in (here, there, here)]
    assert [answer.content for answer in answers] == [b"run 1"] * 3
    assert ["idempotent-replayed" in answer.headers for answer in answers] == [False, True, True]


@pytest.mark.parametrize("kind", [request_tx, request_session])
async def test_a_handler_that_swallows_being_told_to_end_is_not_heard(counter, kind):
    async def place(request):
        counter.before += 1
        number = counter.before
        try:
            async with kind(request):
                counter.inside += 1
        except Exception:
            async with asyncio.TaskGroup() as group:  # and fails again, in a group
                group.create_task(_again(kind, request))
        return PlainTextResponse(f"run {number}")

    async with client(counter.app(place)) as here, client(counter.app(place)) as there:
        answers = [await http.post("/orders", headers=KEY) for http in (here, there)]
    assert [answer.content for answer in answers] == [b"run 1"] * 2
    assert (counter.before, counter.inside) == (2, 1)


async def _again(kind, request):
    async with kind(request):
        pass


async def test_only_the_middleware_that_names_the_route_claims_its_key(counter):
    """Two of them, each with its own routes and its own way."""
    counter.gate.set()
    app = IdempotencyKeys(counter.app(routes=["POST /orders"]), counter.hf, routes=["POST /other"])
    async with client(app) as http:
        answers = [await http.post("/orders", headers=KEY) for _ in range(2)]
    assert [answer.json() for answer in answers] == [{"number": 1}] * 2
    assert await orders(counter.hf) == [1]


async def test_an_inner_middleware_of_other_routes_leaves_the_commit_to_the_outer_one(counter):
    counter.gate.set()
    inner = counter.app(routes=["POST /other"])
    app = IdempotencyKeys(inner, counter.hf, routes=["POST /orders"], one_commit=True, most=1)
    async with client(app) as http:
        answer = await http.post("/orders", headers=KEY)
    assert (answer.status_code, answer.json()["code"]) == (500, "ANSWER_TOO_LARGE")
    assert await orders(counter.hf) == [], "rolled back by the one that holds the key"
