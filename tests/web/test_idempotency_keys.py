"""Idempotency keys over HTTP: one request is run, the others are answered as it was."""

from __future__ import annotations

import asyncio

import pytest
from edge import KEY, client, orders

from holdfast import Holdfast
from holdfast.kernel.errors import StoreUnavailable, UsageError
from holdfast.store.idempotency import LOST, KeyLost
from holdfast.web import IdempotencyKeys, request_tx
from holdfast.web.idempotency.whose import name_of

KEY_FIRST = pytest.mark.parametrize("shop", ["key first"], indirect=True)


@pytest.fixture(params=["key first", "one commit"])
async def shop(shop, request):
    """The key is claimed before the handler, or in its transaction."""
    shop.one_commit = request.param == "one commit"
    return shop


async def test_a_repeated_request_is_answered_byte_for_byte(shop):
    async with client(shop.app()) as http:
        first = await http.post("/orders", json={"id": 1}, headers=KEY)
        again = await http.post("/orders", json={"id": 1}, headers=KEY)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.content == first.content == b'{"id":1,"run":1}'
    assert again.headers["location"] == first.headers["location"] == "/orders/1"
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert "x-once" in first.headers
    assert "x-once" not in again.headers
    assert await orders(shop.hf) == [1]
    assert len(await shop.hf.store.jobs.find(task="shop.ship")) == 1


async def test_a_key_is_taken_quoted_or_bare(shop):
    async with client(shop.app()) as http:
        first = await http.post("/orders", json={"id": 1}, headers={"Idempotency-Key": '"k 1"'})
        again = await http.post("/orders", json={"id": 1}, headers={"Idempotency-Key": "k 1"})
    assert first.content == again.content
    assert await orders(shop.hf) == [1]


@pytest.mark.parametrize("bad", ["", '""', '"open', '"a" b', "x" * 256, "tab\there", " "])
async def test_a_key_that_is_not_valid_is_refused(shop, bad):
    async with client(shop.app()) as http:
        answer = await http.post("/orders", json={"id": 1}, headers={"Idempotency-Key": bad})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "IDEMPOTENCY_KEY_INVALID"
    assert shop.runs == 0


async def test_a_required_key_that_is_missing(shop):
    async with client(shop.app(required=True)) as http:
        answer = await http.post("/orders", json={"id": 1})
        free = await http.get("/orders")
    assert answer.status_code == 400
    assert answer.json()["code"] == "IDEMPOTENCY_KEY_MISSING"
    assert free.status_code == 500  # it has no body, and no key is asked for
    assert shop.runs == 1


async def test_only_the_named_routes_take_keys(shop):
    async with client(shop.app(required=True, routes=["POST /orders"])) as http:
        assert (await http.post("/orders", json={"id": 1})).status_code == 400
        for _ in range(2):
            assert (await http.post("/touch", headers=KEY)).status_code == 200
    assert shop.runs == 2


async def test_another_body_with_the_key_is_refused(shop):
    async with client(shop.app()) as http:
        await http.post("/orders", json={"id": 1}, headers=KEY)
        answer = await http.post("/orders", json={"id": 2}, headers=KEY)
    assert answer.status_code == 422
    assert answer.json()["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert await orders(shop.hf) == [1]


async def test_json_is_compared_by_what_it_says(shop):
    async with client(shop.app()) as http:
        first = await http.post(
            "/orders", content=b'{"id": 1, "note": "a"}', headers={**KEY, "content-type": "application/json"}
        )
        again = await http.post(
            "/orders", content=b'{"note":"a","id":1}', headers={**KEY, "content-type": "application/json"}
        )
    assert again.content == first.content


async def test_a_form_of_parts_is_compared_without_its_boundary(shop):
    async with client(shop.app()) as http:
        first = await http.post("/upload", files={"file": ("a.txt", b"abc")}, headers=KEY)
        again = await http.post("/upload", files={"file": ("a.txt", b"abc")}, headers=KEY)
        other = await http.post("/upload", files={"file": ("a.txt", b"abd")}, headers=KEY)
    assert first.request.headers["content-type"] != again.request.headers["content-type"]
    assert again.content == first.content == b"3 bytes, run 1"
    assert other.status_code == 422


async def test_a_large_upload_goes_through_a_file(shop):
    content = b"x" * 3_000_000
    async with client(shop.app()) as http:
        first = await http.post("/upload", files={"file": ("a.txt", content)}, headers=KEY)
        again = await http.post("/upload", files={"file": ("a.txt", content)}, headers=KEY)
    assert again.content == first.content == b"3000000 bytes, run 1"


async def test_a_request_that_is_too_large_is_refused(shop):
    async with client(shop.app(body=1000)) as http:
        answer = await http.post("/upload", content=b"x" * 1001, headers=KEY)
    assert answer.status_code == 413
    assert shop.runs == 0


async def test_the_key_of_another_person_tenant_or_route_is_another(shop):
    async with client(shop.app()) as http:
        answers = [
            await http.post("/orders", json={"id": 1}, headers={**KEY, "Authorization": "Bearer ada"}),
            await http.post("/orders", json={"id": 1}, headers={**KEY, "Authorization": "Bearer bob"}),
            await http.post("/touch", json={"id": 1}, headers={**KEY, "Authorization": "Bearer bob"}),
        ]
    assert [answer.status_code for answer in answers] == [202, 202, 200]
    assert shop.runs == 3


async def test_bytes_that_are_no_text_come_back_as_they_were(shop):
    async with client(shop.app()) as http:
        first = await http.post("/touch", headers=KEY)
        again = await http.post("/touch", headers=KEY)
    assert again.content == first.content == b"\x00\xff\x00\xff\x00\xff1"


async def test_an_answer_without_a_body_comes_back_without_a_length(shop):
    async def done(scope, receive, send):
        await send({"type": "http.response.start", "status": 204, "headers": [(b"location", b"/orders/1")]})
        await send({"type": "http.response.body"})

    async with client(IdempotencyKeys(done, shop.hf)) as http:
        first = await http.post("/orders", headers=KEY)
        again = await http.post("/orders", headers=KEY)
    assert again.headers.pop("idempotent-replayed") == "true"
    assert (again.status_code, again.headers) == (first.status_code, first.headers)


@pytest.mark.parametrize("status", [500, 503, 429, 408, 425])
async def test_a_passing_failure_rolls_back_and_gives_the_key_back(shop, status):
    shop.fail = [status]
    async with client(shop.app()) as http:
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == status
        assert await orders(shop.hf) == []
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == 202
    assert await orders(shop.hf) == [1]


async def test_a_refusal_of_the_handler_is_kept(shop):
    shop.fail = [404]
    async with client(shop.app()) as http:
        first = await http.post("/orders", json={"id": 1}, headers=KEY)
        again = await http.post("/orders", json={"id": 1}, headers=KEY)
    assert (first.status_code, again.status_code) == (404, 404)
    assert "idempotent-replayed" in again.headers
    assert await orders(shop.hf) == [1]


async def test_an_exception_rolls_back_and_gives_the_key_back(shop):
    shop.fail = [RuntimeError("no")]
    async with client(shop.app()) as http:
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == 500
        assert await orders(shop.hf) == []
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == 202
    assert await orders(shop.hf) == [1]


async def test_a_hundred_at_once_are_one(shop):
    app = shop.app()
    async with client(app) as http:
        answers = await asyncio.gather(
            *(http.post("/orders", json={"id": 7}, headers=KEY) for _ in range(100))
        )
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replayed" in answer.headers for answer in answers) == 99
    assert shop.runs == 1
    assert await orders(shop.hf) == [7]


async def test_who_does_not_wait_is_told_to_come_back(shop):
    shop.gate = asyncio.Event()
    async with client(shop.app(wait=0)) as http:
        first = asyncio.create_task(http.post("/orders", json={"id": 1}, headers=KEY))
        await shop.entered.wait()
        busy = await http.post("/orders", json={"id": 1}, headers=KEY)
        other = await http.post("/orders", json={"id": 2}, headers=KEY)
        shop.gate.set()
        assert (await first).status_code == 202
    assert busy.status_code == 409
    assert busy.headers["retry-after"] == "1"
    assert busy.json()["code"] == "IDEMPOTENCY_KEY_BUSY"
    assert other.status_code == 422


@KEY_FIRST
async def test_two_processes_wait_for_each_other(shop):
    """Two middlewares share nothing but the database."""
    shop.gate = asyncio.Event()
    async with client(shop.app()) as here, client(shop.app()) as there:
        first = asyncio.create_task(here.post("/orders", json={"id": 1}, headers=KEY))
        await shop.entered.wait()
        second = asyncio.create_task(there.post("/orders", json={"id": 1}, headers=KEY))
        busy = await _without_waiting(shop, {"id": 1})
        assert busy.status_code == 409
        shop.gate.set()
        assert (await first).content == (await second).content
    assert shop.runs == 1


async def _without_waiting(shop, body):
    async with client(shop.app(wait=0)) as http:
        return await http.post("/orders", json=body, headers=KEY)


async def test_plain_functions_write_in_the_transaction_too(shop):
    async with client(shop.app()) as http:
        first = await http.post("/plain", headers=KEY)
        again = await http.post("/plain", headers=KEY)
    assert first.content == again.content == b"run 1"
    assert await orders(shop.hf) == [1]
    assert len(await shop.hf.store.jobs.find(task="shop.ship")) == 1


async def test_a_session_commits_with_the_answer(shop):
    async with client(shop.app()) as http:
        first = await http.post("/session", headers=KEY)
        again = await http.post("/session", headers=KEY)
        assert first.content == again.content == b"run 1"
        shop.fail = [RuntimeError("no")]
        assert (await http.post("/session", headers={"Idempotency-Key": "2"})).status_code == 500
    assert await orders(shop.hf) == [1]
    assert len(await shop.hf.store.jobs.find(task="shop.ship")) == 1


async def test_without_a_key_the_transaction_still_commits_with_the_answer(shop):
    async with client(shop.app()) as http:
        assert (await http.post("/orders", json={"id": 1})).status_code == 202
        shop.fail = [500]
        assert (await http.post("/orders", json={"id": 2})).status_code == 500
        shop.fail = [RuntimeError("no")]
        assert (await http.post("/orders", json={"id": 3})).status_code == 500
    assert await orders(shop.hf) == [1]


async def test_an_answer_that_is_too_large_is_refused_and_rolled_back(shop):
    async with client(shop.app()) as http:
        answer = await http.post("/large", headers=KEY)
        assert answer.status_code == 500
        assert answer.json()["code"] == "ANSWER_TOO_LARGE"
        assert await orders(shop.hf) == []
        assert (await http.post("/large")).status_code == 200  # without a key it is not held back
    assert await orders(shop.hf) == [2]


async def test_a_handler_that_takes_longer_than_its_lease_is_ended(shop):
    shop.gate = asyncio.Event()
    async with client(shop.app(lease=1)) as http:
        answer = await http.post("/orders", json={"id": 1}, headers=KEY)
        assert answer.status_code == 503
        assert answer.json()["code"] == "HANDLER_TOO_SLOW"
        shop.gate.set()
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == 202
    assert await orders(shop.hf) == [1]


async def test_a_lost_key_keeps_nothing(shop, monkeypatch):
    """The handler stood still past its lease, and another has taken the key."""
    _losing(shop, monkeypatch, KeyLost(LOST))
    async with client(shop.app(wait=0, lease=1)) as http:
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == 409
        assert await orders(shop.hf) == []


async def test_who_has_lost_the_key_tries_again_with_the_whole_body(shop, monkeypatch):
    """The other has given it up, and the client still waits."""
    _losing(shop, monkeypatch, KeyLost(LOST))
    async with client(shop.app(wait=30, lease=1)) as http:
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == 202
    assert await orders(shop.hf) == [1]
    assert shop.runs == 2


def _losing(shop, monkeypatch, failure):
    """The first answer is not kept."""
    keys = shop.hf.store.keys
    real, losing = keys.answer, [failure]

    async def answer(claim, response, **options):
        if losing:
            raise losing.pop()
        await real(claim, response, **options)

    monkeypatch.setattr(keys, "answer", answer)


@KEY_FIRST
async def test_trouble_with_the_store_is_503(shop, monkeypatch):
    async def begin(*_, **__):
        raise StoreUnavailable("away")

    monkeypatch.setattr(shop.hf.store.keys, "begin", begin)
    async with client(shop.app()) as http:
        answer = await http.post("/orders", json={"id": 1}, headers=KEY)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert "away" not in answer.text
    assert shop.runs == 0


async def test_a_fault_of_the_commit_keeps_nothing(shop, monkeypatch):
    _losing(shop, monkeypatch, StoreUnavailable("away"))
    async with client(shop.app()) as http:
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == 503
        assert await orders(shop.hf) == []
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == 202
    assert await orders(shop.hf) == [1]


async def test_a_cancelled_request_is_rolled_back(shop):
    shop.gate = asyncio.Event()
    async with client(shop.app()) as http:
        first = asyncio.create_task(http.post("/orders", json={"id": 1}, headers=KEY))
        await shop.entered.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        shop.gate.set()
        assert (await http.post("/orders", json={"id": 1}, headers=KEY)).status_code == 202
    assert await orders(shop.hf) == [1]


async def test_an_exception_that_the_handler_catches_rolls_its_block_back(shop):
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def handler(request):
        try:
            async with request_tx(request) as tx:
                await tx.execute("INSERT INTO orders (id) VALUES ($1)", 1)
                raise ValueError
        except ValueError:
            pass
        async with request_tx(request) as tx:
            await tx.execute("INSERT INTO orders (id) VALUES ($1)", 2)
        return PlainTextResponse("done")

    app = IdempotencyKeys(Starlette(routes=[Route("/", handler, methods=["POST"])]), shop.hf)
    async with client(app) as http:
        assert (await http.post("/", headers=KEY)).status_code == 200
    assert await orders(shop.hf) == [2]


async def test_request_tx_needs_the_middleware():
    with pytest.raises(UsageError, match="needs IdempotencyKeys around the app"):
        request_tx({"type": "http"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"routes": "POST /orders"}, "list of patterns"),
        ({"routes": ["/orders"]}, "a method and a path"),
        ({"lease": 0}, "lease must be from 1"),
        ({"most": 10**9}, "most must be from 1"),
        ({"routes": ["POST /orders/{id:number}"]}, "of the kind 'number'"),
        ({"headers": "X-Once"}, "headers is a list"),
        ({"headers": ["X-Once", "Set-Cookie"]}, "no set-cookie"),
        ({"headers": ["Content-Length"]}, "no content-length"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(UsageError, match=words):
        IdempotencyKeys(lambda *_: None, Holdfast("sqlite:///unused.db"), **options)


@pytest.mark.parametrize("odd", ["a\nb", " a ", "a\x00", "\ud800", "x" * 201, "ä" * 101])
def test_what_is_no_name_is_hashed(odd):
    found = name_of("route", odd)
    assert found.startswith("sha-")
    assert found != name_of("route", odd + "x")


def test_what_is_a_name_stays():
    assert (name_of("route", "POST /orders"), name_of("tenant", None)) == ("POST /orders", "")


async def test_an_app_that_answers_what_it_raises_is_not_answered_for_again(shop, monkeypatch):
    """Starlette sends its 500 and raises all the same."""
    shop.fail = [StoreUnavailable("away")]
    sent, app = [], shop.app()

    async def receive():
        return {"type": "http.request", "body": b'{"id": 1}'}

    async def send(message):
        sent.append(message["type"])

    headers = [(b"idempotency-key", b"k"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "method": "POST", "path": "/orders", "query_string": b"", "headers": headers, "http_version": "1.1",
        "scheme": "http", "root_path": "", "client": None, "server": None,
    }  # fmt: skip
    with pytest.raises(StoreUnavailable):
        await app(scope, receive, send)
    assert sent == ["http.response.start", "http.response.body"]


async def test_tasks_behind_the_answer_hold_up_no_repeat(shop):
    from starlette.applications import Starlette
    from starlette.background import BackgroundTask
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    gate = asyncio.Event()

    async def handler(request):
        async with request_tx(request) as tx:
            await tx.execute("INSERT INTO orders (id) VALUES ($1)", 1)
        return PlainTextResponse("done", background=BackgroundTask(gate.wait))

    routes = [Route("/", handler, methods=["POST"])]
    app = IdempotencyKeys(Starlette(routes=routes), shop.hf, wait=30, one_commit=shop.one_commit)
    async with client(app) as http:
        first = asyncio.create_task(http.post("/", headers=KEY))
        while not await orders(shop.hf):
            await asyncio.sleep(0.01)
        again = await http.post("/", headers=KEY)
        assert (again.status_code, "idempotent-replayed" in again.headers) == (200, True)
        gate.set()
        assert (await first).content == again.content
    assert await orders(shop.hf) == [1]
