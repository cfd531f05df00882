"""One story over five processes, as a collector sees it; and what is left of it when one of them is killed in the middle."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import httpx
import psutil
import pytest
from otlp_sink import Sink
from test_metrics_of_processes import free_port

from tools.waiting import until

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PROGRAM = """
import asyncio
import os
import pathlib

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from holdfast import Backoff, Holdfast, Job
from holdfast.observe import traces
from holdfast.web import Correlation

trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
traces()

hf = Holdfast()
bank = hf.guard("bank")


async def charge() -> str:
    return "paid"


async def pack() -> None:
    if pathlib.Path("stand").exists():
        pathlib.Path("stands").write_text(str(os.getpid()))
        await asyncio.sleep(600)


@hf.task(name="order.place", queue="orders", retry=Backoff(attempts=3, first=0.01, ceiling=0.02))
async def place(job: Job, order: int) -> None:
    await job.effect("charge", charge, policy="at_least_once", guard=bank)
    await job.step("pack", pack)
    await hf.emit("order.placed", {"order": order}, key=f"order:{order}")


@hf.on("order.placed", group="shipping", queue="ships")
async def ship(event) -> None:
    await deliver.start(event.data["order"], id=f"deliver:{event.data['order']}")


async def told(order: int) -> None:
    await tell.enqueue(order)


@hf.saga("deliver", queue="sagas")
async def deliver(saga, order: int) -> None:
    await saga.step("book", charge)
    await saga.step("tell", told, order)


@hf.task(name="order.tell", queue="sagas")
async def tell(order: int) -> None: ...


async def api(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        async with hf:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    handle = await place.enqueue(7)
    await send({"type": "http.response.start", "status": 202, "headers": []})
    await send({"type": "http.response.body", "body": handle.id.encode()})


app = Correlation(api)
"""


@pytest.fixture
def sink():
    found = Sink()
    yield found
    found.close()


@pytest.fixture
async def start(url, sink, tmp_path):
    """Starts processes, each of which sends its spans under a name of its own."""
    (tmp_path / "story.py").write_text(PROGRAM)
    started = []

    async def begin(name, *command):
        environment = {
            **os.environ,
            "HOLDFAST_URL": url,
            "PYTHONPATH": str(tmp_path),
            "OTEL_SERVICE_NAME": name,
            "OTEL_EXPORTER_OTLP_ENDPOINT": sink.address,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *command, cwd=tmp_path, env=environment, stderr=asyncio.subprocess.DEVNULL
        )
        started.append(process)
        return process

    yield begin
    for process in reversed(started):
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
    for process in started:
        async with asyncio.timeout(30):
            await process.wait()


async def asked(start):
    """The relay leads before any worker could; then a request of a client that traces arrives."""
    port = free_port()
    await start("relay", "holdfast", "relay", "story:hf")
    await start("api", "uvicorn", "story:app", "--port", str(port), "--log-level", "error")
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01", "x-correlation-id": "order-7"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as client:

        async def answered():
            try:
                return (await client.post("/", headers=headers)).status_code == 202
            except httpx.HTTPError:
                return False

        await until(answered, 30)


NAMES = (
    "send order.place", "process order.place", "step pack", "send order.placed", "publish", "process order.placed",
    "send saga:deliver", "process saga:deliver", "step book", "step tell", "send order.tell", "process order.tell",
)  # fmt: skip


def check_story(sink):
    """From the client's span to the last job: who is whose child, where, and linked to what."""
    wanted = {
        "send order.place": ("api", SPAN),
        "send order.placed": ("worker-a", "process order.place"),
        "process order.placed": ("worker-b", "send order.placed"),
        "send saga:deliver": ("worker-b", "process order.placed"),
        "process saga:deliver": ("worker-c", "send saga:deliver"),
        "step book": ("worker-c", "process saga:deliver"),
        "step tell": ("worker-c", "process saga:deliver"),
        "send order.tell": ("worker-c", "step tell"),
        "process order.tell": ("worker-c", "send order.tell"),
    }
    for name, (service, parent) in wanted.items():
        span = sink.one(name)
        above = [SPAN] if parent == SPAN else [each.id for each in sink.called(parent)]
        assert (span.trace, span.service) == (TRACE, service), name
        assert span.parent in above, name
        assert span.says["holdfast.correlation_id"] == "order-7", name
        assert not span.failed, name
    for name in ("order.place", "order.placed", "saga:deliver", "order.tell"):
        for run in sink.called(f"process {name}"):
            assert (run.parent,) == run.links == (sink.one(f"send {name}").id,)
    published = sink.one("publish")
    assert (published.service, published.parent) == ("relay", "")
    assert published.links == (sink.one("send order.placed").id,)
    assert published.trace != TRACE


async def test_one_story_over_five_processes(start, sink):
    for letter, queue in zip("abc", ("orders", "ships", "sagas"), strict=True):
        if letter == "a":
            await asked(start)
        await start(f"worker-{letter}", "holdfast", "worker", "story:hf", "-q", f"{queue}:2")
    await until(lambda: all(map(sink.called, NAMES)), 90)
    check_story(sink)
    [run] = sink.called("process order.place")
    assert {each.parent for name in ("step charge", "step pack") for each in sink.called(name)} == {run.id}
    assert sink.one("call bank").parent == sink.one("step charge").id
    assert {each.service for each in sink.spans} == {"api", "relay", "worker-a", "worker-b", "worker-c"}
    ids = {each.id for each in sink.spans} | {SPAN, ""}
    assert [each for each in sink.spans if each.parent not in ids] == [], "nothing hangs in the air"


async def test_a_story_goes_on_when_a_process_is_killed_in_the_middle(start, sink, tmp_path):
    """What is lost is the span of the run that was killed, and nothing else: the story is one, and its next run is beside it."""
    (tmp_path / "stand").touch()
    await asked(start)
    for letter, queue in zip("abc", ("orders", "ships", "sagas"), strict=True):
        processes = ("-p", "2") if letter == "a" else ()
        await start(f"worker-{letter}", "holdfast", "worker", "story:hf", "-q", f"{queue}:2", *processes)
    stands = tmp_path / "stands"
    await until(lambda: stands.exists() and stands.read_text() and sink.called("step charge"), 60)
    (tmp_path / "stand").unlink()
    psutil.Process(int(stands.read_text())).kill()
    await until(lambda: all(map(sink.called, NAMES)), 90)
    check_story(sink)
    [run] = sink.called("process order.place")
    assert run.says["holdfast.job.interruptions"] == 1
    assert sink.one("step pack").parent == run.id, "that of the killed run was never sent"
    charged = sink.one("step charge")
    assert (charged.trace, charged.parent != run.id) == (TRACE, True), "done once, by the run that was killed"
    ids = {each.id for each in sink.spans} | {SPAN, ""}
    assert {each.parent for each in sink.spans} - ids == {charged.parent}
