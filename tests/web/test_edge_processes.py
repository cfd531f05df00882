"""Idempotency keys with real API processes that are killed: one effect for each key, and every answer of it the same bytes."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter, defaultdict

import httpx
import pytest
from edge_fleet import Api

from holdfast import Holdfast

KEYS, REPEATS = (int(each) for each in os.environ.get("HOLDFAST_TEST_SUBMITS", "40x15").split("x"))
PROCESSES = 4


@pytest.fixture
async def hf(url):
    async with Holdfast(url) as opened:
        async with opened.transaction() as tx:
            await tx.execute("CREATE TABLE orders (id TEXT, pid INTEGER)")
        yield opened


@pytest.fixture(params=["key first", "one commit"])
def commits(request):
    """Of a handler with its key: two, or one."""
    return "2" if request.param == "key first" else "1"


@pytest.fixture
async def fleet(hf, url, tmp_path, commits):
    apis = [Api(url, tmp_path, EDGE_COMMITS=commits) for _ in range(PROCESSES)]
    await asyncio.gather(*(api.start() for api in apis))
    yield apis
    await asyncio.gather(*(api.stop() for api in apis))


@pytest.fixture
async def api(hf, url, tmp_path):
    one = Api(url, tmp_path)
    yield one
    await one.stop()


async def counted(hf):
    """How many orders, jobs and events each id has."""
    async with hf.transaction() as tx:
        orders = Counter(row[0] for row in await tx.fetch("SELECT id FROM orders"))
    jobs = Counter()
    before = None
    while found := await hf.store.jobs.find(task="shop.ship", before=before, limit=1000):
        jobs.update(job.args for job in found)
        before = found[-1].id
    events = Counter(event.key for event in await hf.outbox.find(type="order.placed", limit=10_000))
    return orders, jobs, events


async def test_each_key_has_one_effect_while_processes_are_killed(hf, fleet):
    """Every repeat goes to a process of chance, and comes again when that process is killed under it."""
    chance = random.Random(7)
    answers, refusals = defaultdict(set), Counter()
    is_over = asyncio.Event()
    room = asyncio.Semaphore(
        40
    )  # ten thousand that wait for a connection would keep the client busy, not the servers

    async def submit(http, key):
        async with room, asyncio.timeout(120):
            while True:
                api = chance.choice(fleet)
                headers = {"Idempotency-Key": f'"{key}"'}
                try:
                    answer = await http.post(f"{api.url}/orders", json={"id": key}, headers=headers)
                except httpx.TransportError:
                    await asyncio.sleep(0.05)
                    continue
                if answer.status_code == 202:
                    answers[key].add((answer.headers["location"], answer.content))
                    return
                refusals[answer.status_code] += 1
                assert answer.status_code in (409, 503), answer.text
                await asyncio.sleep(0.05)

    async def kill():
        while not is_over.is_set():
            api = chance.choice(fleet)
            await asyncio.sleep(chance.uniform(0.2, 0.6))
            await api.kill()
            await api.start()

    async with httpx.AsyncClient(timeout=20, limits=httpx.Limits(max_connections=40)) as http:
        killing = asyncio.create_task(kill())
        work = [f"key-{number}" for number in range(KEYS)] * REPEATS
        chance.shuffle(work)
        try:
            await asyncio.gather(*(submit(http, key) for key in work))
        finally:  # or it starts processes that nobody stops
            is_over.set()
            await killing
    assert all(len(found) == 1 for found in answers.values()), "a repeat was answered with other bytes"
    assert len(answers) == KEYS
    orders, jobs, events = await counted(hf)
    assert orders == {f"key-{number}": 1 for number in range(KEYS)}
    assert sorted(jobs.values()) == [1] * KEYS
    assert sorted(events.values()) == [1] * KEYS


@pytest.mark.parametrize("where", ["handler", "request.before_commit", "request.after_commit"])
async def test_the_api_is_killed_at_its_worst_moments(hf, api, commits, where):
    """In the handler, and before and after its commit: the client that asks again is answered, and it is done once."""
    await api.start(EDGE_COMMITS=commits, **({} if where == "handler" else {"EDGE_CRASH": where}))
    body = {"id": "7", **({"die": "handler"} if where == "handler" else {})}
    headers = {"Idempotency-Key": "seven"}
    async with httpx.AsyncClient(timeout=20) as http:
        with pytest.raises(httpx.TransportError):
            await http.post(f"{api.url}/orders", json=body, headers=headers)
        await api.process.wait()
        was_committed = where == "request.after_commit"
        orders, _, _ = await counted(hf)
        assert sum(orders.values()) == was_committed
        await api.start(EDGE_COMMITS=commits)
        async with asyncio.timeout(30):
            while (
                answer := await http.post(f"{api.url}/orders", json=body, headers=headers)
            ).status_code == 409:
                await asyncio.sleep(0.1)
        assert answer.status_code == 202
        assert ("idempotent-replayed" in answer.headers) is was_committed
        again = await http.post(f"{api.url}/orders", json=body, headers=headers)
    assert (again.content, again.headers["location"]) == (answer.content, answer.headers["location"])
    orders, jobs, events = await counted(hf)
    assert (orders, sum(jobs.values()), sum(events.values())) == ({"7": 1}, 1, 1)


async def test_a_client_that_hangs_up_leaves_nothing_half(hf, api):
    await api.start()
    body = b'{"id": "9"}'
    head = (
        f"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: nine\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    for sent in (head, head + body[:4], head + body):
        _, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(sent)
        await writer.drain()
        writer.close()
    async with httpx.AsyncClient(timeout=20) as http, asyncio.timeout(30):
        headers = {"Idempotency-Key": "nine", "Content-Type": "application/json"}
        while (
            answer := await http.post(f"{api.url}/orders", content=body, headers=headers)
        ).status_code != 202:
            assert answer.status_code == 409
            await asyncio.sleep(0.1)
    orders, jobs, events = await counted(hf)
    assert (orders, sum(jobs.values()), sum(events.values())) == ({"9": 1}, 1, 1)


# --- clients that mean harm ---


@pytest.fixture
async def open_api(api):
    return await api.start(EDGE_TIME="2")


async def heard(port, sent, silence=1.0):
    """What the server says to these bytes, until it hangs up or says nothing more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        writer.write(sent)
        while part := await asyncio.wait_for(reader.read(65536), silence if answer else 20):
            answer += part
    except (ConnectionError, TimeoutError):
        pass
    finally:
        writer.close()
    return answer


async def test_a_body_that_trickles_is_ended_and_others_are_served(open_api):
    head = b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"

    async def trickle():
        reader, writer = await asyncio.open_connection("127.0.0.1", open_api.port)
        writer.write(head)
        try:
            async with asyncio.timeout(30):
                answer = asyncio.create_task(reader.read())
                while not answer.done():
                    writer.write(b"x")
                    await asyncio.wait([answer], timeout=0.3)
                return answer.result()
        finally:
            writer.close()

    slow = [asyncio.create_task(trickle()) for _ in range(200)]
    await asyncio.sleep(0.5)
    async with httpx.AsyncClient(timeout=5) as http:
        assert (await http.post(f"{open_api.url}/size", content=b"x" * 10)).json() == {"bytes": 10}
    answers = await asyncio.gather(*slow)
    assert {answer.split(b"\r\n", 1)[0] for answer in answers} == {b"HTTP/1.1 408 Request Timeout"}


async def test_a_body_that_never_ends_is_refused_before_it_fills_anything(open_api):
    async def endless():
        while True:
            yield b"x" * 65536

    async with httpx.AsyncClient(timeout=20) as http:
        try:
            answer = await http.post(f"{open_api.url}/size", content=endless())
            assert answer.status_code == 413
        except httpx.TransportError:
            pass  # it was hung up on, in the middle of its body
        assert (await http.post(f"{open_api.url}/size", content=b"x")).json() == {"bytes": 1}


@pytest.mark.parametrize("kind", ["declared", "chunked"])
async def test_who_sends_somewhat_too_much_reads_why(open_api, kind):
    async def chunked():
        for _ in range(30):
            yield b"x" * 100_000

    async with httpx.AsyncClient(timeout=20) as http:
        content = b"x" * 3_000_000 if kind == "declared" else chunked()
        answer = await http.post(f"{open_api.url}/size", content=content)
    assert (answer.status_code, answer.json()["code"]) == (413, "REQUEST_TOO_LARGE")


SMUGGLED = b"POST /orders HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n" + b'{"id":"gotcha"}'
CORPUS = {
    "length and chunks": b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two lengths": b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 99\r\n\r\n" + SMUGGLED,
    "a length with a sign": b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n" + SMUGGLED,
    "a space before the colon": b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length : 999\r\n\r\n" + SMUGGLED,
    "odd chunked": b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunked twice": b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a bare line feed": b"POST /size HTTP/1.1\nHost: x\nContent-Length: 0\n\n" + SMUGGLED,
    "a folded header": b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a bad chunk size": b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + SMUGGLED,
    "a NUL in a header": b"POST /size HTTP/1.1\r\nHost: x\r\nX-A: a\x00b\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
}  # fmt: skip


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_no_request_hides_in_the_body_of_another(hf, open_api):
    """Where two servers would read a request's end differently, ours refuses it, or reads what follows as a request of its own."""
    for name, sent in CORPUS.items():
        answer = await heard(open_api.port, sent)
        statuses = [line[9:12] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
        assert all(status in (b"200", b"202", b"400") for status in statuses), (name, answer)
        assert len(statuses) <= 2, (name, answer)
        if b"Content-Length : " in sent or b"chunked" in sent or sent.count(b"Content-Length: ") > 2:
            assert b"202" not in statuses, f"{name}: what was hidden has run"
    async with httpx.AsyncClient(timeout=5) as http:
        assert (await http.post(f"{open_api.url}/size", content=b"xy")).json() == {"bytes": 2}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_odd_paths_keys_and_bodies_are_answered_and_not_fallen_over(hf, open_api):
    corpus = [
        b"POST /orders/%0a%00 HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /orders/"
        + b"a" * 3000
        + b" HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /orders/%20 HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: \xff\xfe\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: "
        + b"k" * 256
        + b"\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nX-Correlation-Id: a b\r\ntraceparent: 00-x\r\nContent-Length: 2\r\n\r\n{}",
    ]
    for sent in corpus:
        answer = await heard(open_api.port, sent)
        assert answer.startswith(b"HTTP/1.1 "), sent
        status = int(answer[9:12])
        assert status in (202, 400, 404), (sent, answer)
        assert b"Traceback" not in answer
