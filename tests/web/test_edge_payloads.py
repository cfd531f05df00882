"""Odd JSON over HTTP, with a key: refused with 4xx, or stored and answered as it was, on both stores alike."""

from __future__ import annotations

import json

import pytest
from edge import client
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.middleware import Middleware

from holdfast.web import BodyLimits, IdempotencyKeys, Problems, request_tx


@pytest.fixture
def shop(hf):
    @hf.task(name="shop.keep")
    async def keep(text: object) -> None: ...

    edge = [
        Middleware(Problems),
        Middleware(BodyLimits, total=2_000_000),
        Middleware(IdempotencyKeys, hf, required=True),
    ]
    app = FastAPI(middleware=edge)

    @app.post("/notes")
    async def note(request: Request, body: dict):
        async with request_tx(request) as tx:
            handle = await keep.options(tx=tx).enqueue(body["text"])
        return JSONResponse({"text": body["text"], "job": str(handle.id)})

    return app


async def sent(http, raw, key="k"):
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    return await http.post("/notes", content=raw, headers=headers)


REFUSED = {
    "deep lists": b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"text": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    "deep and broken": b'{"text": ' + b"[" * 100_000,
    "a lone surrogate": b'{"text": "a\\ud800b"}',
    "a surrogate the wrong way round": b'{"text": "\\udc00\\ud800"}',
    "a surrogate in a name": b'{"text": {"\\ud800": 1}}',
    "NaN": b'{"text": NaN}',
    "infinity": b'{"text": 1e400}',
    "a giant integer": b'{"text": ' + b"9" * 5000 + b"}",
    "large": b'{"text": "' + b"x" * 1_500_000 + b'"}',
    "too large for anything": b'{"text": "' + b"x" * 2_000_001 + b'"}',
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_cannot_be_stored_is_refused_and_its_key_is_free(hf, shop, name):
    async with client(shop) as http:
        for _ in range(2):
            answer = await sent(http, REFUSED[name])
            assert answer.status_code in (400, 413, 422), answer.text
            assert "idempotent-replayed" not in answer.headers or answer.status_code in (400, 422)
        assert (await sent(http, b'{"text": "well"}', key="another")).status_code == 200
    assert [json.loads(job.args) for job in await hf.store.jobs.find(task="shop.keep")] == [{"text": "well"}]


KEPT = [
    "a\x00b",
    "é",
    "e\u0301",
    "\u202eabc\u202c",
    "שלום",
    "👩‍👩‍👧",
    "\U0010ffff",
    "\u2028\u2029\x85",
    "\x1b[2J",
    "<script>",
    "-0",
    "\ufeff",
    " " * 9,
]


@pytest.mark.parametrize("text", KEPT)
async def test_what_is_stored_comes_back_as_it_was(hf, shop, text):
    async with client(shop) as http:
        first, again = [await sent(http, json.dumps({"text": text}).encode()) for _ in range(2)]
        assert (first.status_code, first.json()["text"]) == (200, text)
        assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
        raw = await sent(http, json.dumps({"text": text}, ensure_ascii=False).encode())
        assert raw.content == first.content, "the same request, written otherwise"
    assert [json.loads(job.args) for job in await hf.store.jobs.find(task="shop.keep")] == [{"text": text}]
