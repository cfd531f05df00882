"""Shedding: what was accepted is done in time, since nothing more is accepted while too much waits."""

from __future__ import annotations

import asyncio

import pytest
from edge import client

from holdfast import Holdfast
from holdfast.errors import StoreUnavailable, UsageError
from holdfast.web import Shedding


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


async def until_status(http, status, path="/"):
    async with asyncio.timeout(20):
        while (answer := await http.get(path)).status_code != status:
            await asyncio.sleep(0.05)
    return answer


async def test_requests_are_refused_while_the_oldest_job_waits_too_long(hf):
    @hf.task(name="mail.send")
    async def send() -> None: ...

    async with client(Shedding(hello, hf, oldest={"default": 0.2, "other": 0.0})) as http:
        assert (await http.get("/")).status_code == 200
        await send.enqueue()
        answer = await until_status(http, 503)
        assert (answer.json()["code"], answer.headers["retry-after"]) == ("OVERLOADED", "1")
        async with hf.worker():
            await until_status(http, 200)


async def test_a_queue_without_a_mark_stops_nobody(hf):
    @hf.task(name="slow", queue="bulk")
    async def slow() -> None: ...

    await slow.enqueue()
    await asyncio.sleep(0.1)
    async with client(Shedding(hello, hf, oldest={"default": 0.0})) as http:
        assert (await http.get("/")).status_code == 200


async def test_so_many_requests_are_served_at_once(hf):
    gate, entered = asyncio.Event(), asyncio.Event()

    async def slow(scope, receive, send):
        entered.set()
        await gate.wait()
        await hello(scope, receive, send)

    async with client(Shedding(slow, hf, in_flight=1)) as http:
        first = asyncio.create_task(http.get("/"))
        await entered.wait()
        assert (await http.get("/")).status_code == 503
        gate.set()
        assert (await first).status_code == 200
        assert (await http.get("/")).status_code == 200


async def test_other_routes_are_served(hf):
    gate, entered = asyncio.Event(), asyncio.Event()

    async def slow(scope, receive, send):
        if scope["method"] == "POST":
            entered.set()
            await gate.wait()
        await hello(scope, receive, send)

    async with client(Shedding(slow, hf, in_flight=1, routes=["POST /orders"])) as http:
        first = asyncio.create_task(http.post("/orders"))
        await entered.wait()
        assert (await http.get("/orders")).status_code == 200
        assert (await http.post("/orders")).status_code == 503
        gate.set()
        assert (await first).status_code == 200


class Reading:
    """Reads the whole body, and then works until it may end."""

    def __init__(self):
        self.gate, self.begun, self.working, self.most = asyncio.Event(), 0, 0, 0

    async def __call__(self, scope, receive, send):
        self.begun += 1
        while (await receive()).get("more_body"):
            pass
        self.working += 1
        self.most = max(self.most, self.working)
        await self.gate.wait()
        self.working -= 1
        await hello(scope, receive, send)


class Sent:
    """A request whose body comes when the test says so."""

    def __init__(self, app):
        self._more, self.status = asyncio.Queue(), None
        self.task = asyncio.create_task(
            app({"type": "http", "method": "POST", "path": "/", "headers": []}, self._more.get, self._heard)
        )

    async def _heard(self, message):
        self.status = self.status or message["status"]

    def send(self, *, more):
        self._more.put_nowait({"type": "http.request", "body": b"x", "more_body": more})


async def turns(number=20):
    for _ in range(number):
        await asyncio.sleep(0)


async def test_bodies_that_trickle_keep_nobody_out(hf):
    app = Reading()
    app.gate.set()
    shed = Shedding(app, hf, in_flight=2)
    slow = [Sent(shed) for _ in range(19)]
    await turns()
    for each in slow:
        each.send(more=True)
    await turns()
    assert app.begun == 19
    async with client(shed) as http:
        assert (await http.post("/", content=b"x")).status_code == 200
        slow.append(Sent(shed))
        await turns()
        answer = await http.post("/", content=b"x")
        assert answer.status_code == 503, "each of those that wait takes memory"
    for each in slow:
        each.send(more=False)
    await asyncio.gather(*(each.task for each in slow))
    assert {each.status for each in slow} == {200}


async def test_bodies_that_are_complete_at_once_are_worked_on_one_after_the_other(hf):
    app = Reading()
    shed = Shedding(app, hf, in_flight=2)
    slow = [Sent(shed) for _ in range(10)]
    await turns()
    for each in slow:
        each.send(more=False)
    await turns()
    assert app.working == 2
    late = Sent(shed)
    await late.task
    assert late.status == 503, "those whose body has come go before it"
    for each in slow[4:8]:  # two that work or wait to, and two that have just been called
        each.task.cancel()
    app.gate.set()
    await asyncio.gather(*(each.task for each in slow), return_exceptions=True)
    assert [each.status for each in slow] == [200] * 4 + [None] * 4 + [200] * 2
    assert app.most == 2
    async with client(shed) as http:
        assert (await http.post("/", content=b"x")).status_code == 200


async def test_the_database_is_asked_once_a_second_however_many_ask(hf, monkeypatch):
    asked, waits = [], hf.store.queues.waits

    async def counted():
        asked.append(1)
        return await waits()

    monkeypatch.setattr(hf.store.queues, "waits", counted)
    async with client(Shedding(hello, hf, oldest={"default": 5.0})) as http:
        await asyncio.gather(*(http.get("/") for _ in range(50)))
    assert len(asked) == 1


async def test_a_database_that_does_not_answer_sheds_nobody(tmp_path, monkeypatch):
    async with Holdfast(f"sqlite:///{tmp_path / 'a.db'}") as hf:

        async def waits():
            raise StoreUnavailable("gone")

        monkeypatch.setattr(hf.store.queues, "waits", waits)
        async with client(Shedding(hello, hf, oldest={"default": 0.0})) as http:
            assert (await http.get("/")).status_code == 200


@pytest.mark.parametrize(
    "options", [{"oldest": {"a": -1}}, {"oldest": {"": 1}}, {"in_flight": 0}, {"routes": ["/orders"]}]
)
def test_wrong_marks_are_refused(options):
    with pytest.raises(UsageError):
        Shedding(hello, None, **options)
