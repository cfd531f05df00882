"""Spans of one process: what they are called, what they say, whose children they are, and what they keep to themselves."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys

import httpx
import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import SpanKind, StatusCode
from traces_kit import linked, own, parent, spans_of
from waiting import until

from holdfast import Backoff, Holdfast, Job, Reject, Secret, Snooze, within
from holdfast.errors import JobDead, UsageError
from holdfast.guards.http import GuardedTransport
from holdfast.observe import ConsoleFormatter, JsonFormatter, traces
from holdfast.store.states import State
from holdfast.web import Correlation

QUICK = Backoff(attempts=3, first=0.01, ceiling=0.02)
CLIENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans():
    with spans_of() as found:
        yield found


async def is_over(handle, state=State.SUCCEEDED):
    async def there():
        return (await handle.record()).state is state

    await until(there)


async def test_a_run_is_the_child_of_what_stored_its_job_and_linked_to_it(url, spans):
    hf = Holdfast(url)

    @hf.task(name="mail.send", queue="mail")
    async def send(name: str) -> None: ...

    async with hf:
        with within(correlation_id="order-7"):
            handle = await send.enqueue("ada")
        async with hf.worker({"mail": 2}):
            await is_over(handle)
    sent, run = spans.one("send mail.send"), spans.one("process mail.send")
    assert (sent.kind, run.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert (parent(sent), parent(run), linked(run)) == (None, own(sent), [own(sent)])
    assert sent.context.trace_id == run.context.trace_id
    assert dict(sent.attributes) == {
        "messaging.system": "holdfast",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "mail",
        "messaging.message.id": handle.id,
        "messaging.message.conversation_id": "order-7",
        "holdfast.task": "mail.send",
        "holdfast.queue": "mail",
        "holdfast.correlation_id": "order-7",
    }
    assert dict(run.attributes) == {
        "messaging.system": "holdfast",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": handle.id,
        "messaging.message.conversation_id": "order-7",
        "holdfast.task": "mail.send",
        "holdfast.queue": "mail",
        "holdfast.correlation_id": "order-7",
        "holdfast.job.id": handle.id,
        "holdfast.job.attempt": 1,
        "holdfast.job.outcome": "succeeded",
    }
    assert run.instrumentation_scope.schema_url == "https://opentelemetry.io/schemas/1.44.0"


async def test_every_attempt_hangs_below_what_stored_the_job(url, spans):
    hf = Holdfast(url)

    @hf.task(retry=QUICK)
    async def shaky(job: Job) -> None:
        if job.attempt < 3:
            raise ValueError(f"not yet {job.attempt}")

    async with hf:
        handle = await shaky.enqueue()
        async with hf.worker():
            await is_over(handle)
    [sent] = [each for each in spans.all if each.name.startswith("send")]
    runs = [each for each in spans.all if each.name.startswith("process")]
    assert [each.attributes["holdfast.job.attempt"] for each in runs] == [1, 2, 3]
    assert [each.attributes["holdfast.job.outcome"] for each in runs] == ["failed", "failed", "succeeded"]
    assert {parent(each) for each in runs} == {own(sent)} == {each for run in runs for each in linked(run)}
    assert [each.status.status_code for each in runs] == [StatusCode.ERROR] * 2 + [StatusCode.UNSET]
    assert runs[0].attributes["error.type"] == "ValueError"
    [told] = runs[0].events
    assert (told.name, told.attributes["exception.message"]) == ("exception", "not yet 1")
    assert "in shaky" in told.attributes["exception.stacktrace"]


async def test_jobs_of_one_batch_have_one_origin(url, spans):
    hf = Holdfast(url)

    @hf.task(name="grow")
    async def grow(number: int) -> None: ...

    async with hf:
        handles = await grow.enqueue_many([grow.bind(number) for number in range(5)])
        async with hf.worker():
            for each in handles:
                await is_over(each)
    sent = spans.one("send grow")
    assert sent.attributes["messaging.batch.message_count"] == 5
    assert "messaging.message.id" not in sent.attributes
    assert [linked(each) for each in spans.called("process grow")] == [[own(sent)]] * 5


async def test_steps_effects_and_guarded_calls_are_parts_of_a_run(url, spans):
    hf = Holdfast(url)
    bank = hf.guard("bank", retry=QUICK)
    tries = []

    async def look() -> int:
        return 1

    async def pay() -> str:
        tries.append(1)
        if len(tries) < 2:
            raise ConnectionError("gone")
        return "paid"

    @hf.task(name="order")
    async def order(job: Job) -> None:
        await job.step("look", look)
        await job.effect("pay", pay, policy="at_least_once", guard=bank)
        await bank.call(look)

    async with hf:
        handle = await order.enqueue()
        async with hf.worker():
            await is_over(handle)
    run, step, effect = spans.one("process order"), spans.one("step look"), spans.one("step pay")
    assert parent(step) == parent(effect) == own(run)
    assert dict(step.attributes) == {
        "holdfast.step.name": "look",
        "holdfast.step.kind": "step",
        "holdfast.correlation_id": handle.id,
    }
    assert effect.attributes["holdfast.step.kind"] == "at_least_once"
    calls = spans.called("call bank")
    assert [parent(each) for each in calls] == [own(effect), own(run)]
    assert calls[0].attributes["holdfast.guard.name"] == "bank"
    assert calls[0].status.status_code is StatusCode.UNSET, "its second try was well"


async def test_a_step_that_is_recorded_has_no_second_span(url, spans):
    hf = Holdfast(url)

    async def look() -> int:
        return 1

    @hf.task(name="order", retry=QUICK)
    async def order(job: Job) -> None:
        await job.step("look", look)
        if job.attempt == 1:
            raise ValueError("once more")

    async with hf:
        handle = await order.enqueue()
        async with hf.worker():
            await is_over(handle)
    assert (len(spans.called("process order")), len(spans.called("step look"))) == (2, 1)


async def test_what_an_event_causes_hangs_below_its_emit_and_the_relay_is_linked(url, spans):
    hf = Holdfast(url)
    heard = []

    @hf.on("order.*", group="billing", queue="bills")
    async def bill(event) -> None:
        heard.append(event)

    async with hf:
        async with hf.worker({"bills": 2}):
            first = await hf.emit("order.placed", {"id": 1})
            await hf.emit("order.paid", {"id": 1})
            await until(lambda: len(heard) == 2)
        await until(lambda: len([each for each in spans.all if each.kind is SpanKind.CONSUMER]) == 2)
    sent, run = spans.one("send order.placed"), spans.one("process order.placed")
    assert (parent(run), linked(run)) == (own(sent), [own(sent)])
    said = dict(run.attributes)
    assert said["messaging.destination.name"] == "order.placed"
    assert said["messaging.consumer.group.name"] == "billing"
    assert said["messaging.message.id"] == first.id
    assert (said["holdfast.task"], said["holdfast.queue"]) == ("on:billing:bill", "bills")
    published = spans.called("publish")
    assert {each.kind for each in published} == {SpanKind.CLIENT}
    assert sum(each.attributes["messaging.batch.message_count"] for each in published) == 2
    origins = {own(each) for each in spans.all if each.kind is SpanKind.PRODUCER}
    assert {each for span in published for each in linked(span)} == origins
    assert {parent(each) for each in published} == {None}


async def test_a_broker_carries_the_trace_and_the_relay_names_it(url, spans, valkey, tmp_path):
    hf = Holdfast(url, transport=f"{valkey.url}?topic={tmp_path.name}")

    @hf.on("order.*", group="billing")
    async def bill(event) -> None: ...

    async with hf, hf.worker():
        await hf.emit("order.placed", {"id": 1})
        await until(lambda: spans.called("process order.placed"))
    sent = spans.one("send order.placed")
    assert parent(spans.one("process order.placed")) == own(sent)
    assert linked(spans.one("publish")) == [own(sent)]
    assert spans.says("publish")["holdfast.broker"] == "redis"


async def test_a_run_of_a_saga_is_linked_to_the_event_that_it_waited_for(url, spans):
    hf = Holdfast(url)

    @hf.saga("wait")
    async def wait(saga) -> None:
        await saga.wait_for("order.paid", key="1")

    async with hf:
        run = await wait.start(id="wait:1")
        async with hf.worker():
            await until(lambda: spans.called("process saga:wait"))
            await hf.emit("order.paid", {}, key="1")
            await run.result(10)
        await until(lambda: len(spans.called("process saga:wait")) >= 2)
    begun, paid = spans.one("send saga:wait"), spans.one("send order.paid")
    last = spans.called("process saga:wait")[-1]
    assert (parent(last), linked(last)) == (own(begun), [own(begun), own(paid)])


async def test_a_saga_its_steps_and_its_undos(url, spans):
    hf = Holdfast(url)

    async def reserve() -> int:
        return 1

    async def free(number: int) -> None: ...

    async def charge() -> None:
        raise ValueError("no money")

    @hf.saga("buy")
    async def buy(saga) -> None:
        await saga.step("reserve", reserve, undo=free)
        await saga.step("charge", charge)

    async with hf:
        run = await buy.start(id="buy:1")
        async with hf.worker():

            async def undone():
                return (await run.status()).value == "undone"

            await until(undone)
    sent, carried = spans.one("send saga:buy"), spans.called("process saga:buy")
    assert {parent(each) for each in carried} == {own(sent)}
    assert {parent(spans.one(name)) for name in ("step reserve", "step charge", "step undo/reserve")} <= {
        own(each) for each in carried
    }
    assert spans.one("step charge").status.status_code is StatusCode.ERROR


async def test_secrets_are_masked_in_every_span(url, spans):
    hf = Holdfast(url)
    canary = "s3cret-canary"

    @hf.task(name="login", retry=Backoff(attempts=1))
    async def login(job: Job, password: Secret[str]) -> None:
        async def inside() -> None:
            raise ValueError(f"wrong: {password}")

        await job.step("try", inside)

    async with hf:
        handle = await login.enqueue(canary)
        async with hf.worker():
            with pytest.raises(JobDead):
                await handle.result(10)
    assert [each.status.description for each in spans.called("step try")] == ["wrong: ***"]
    assert "***" in spans.one("process login").events[0].attributes["exception.stacktrace"]
    assert canary not in "".join(each.to_json() for each in spans.all)


async def test_what_is_no_failure_is_none_in_a_span(url, spans):
    hf = Holdfast(url)

    @hf.task(name="later")
    async def later(job: Job) -> None:
        if len(spans.called("process later")) == 0:
            raise Snooze(0.01)
        raise Reject("bad address")

    async with hf:
        handle = await later.enqueue()
        async with hf.worker():
            await is_over(handle, State.DEAD)
    snoozed, dead = spans.called("process later")
    assert (snoozed.attributes["holdfast.job.outcome"], snoozed.status.status_code) == (
        "snoozed",
        StatusCode.UNSET,
    )
    assert (dead.attributes["holdfast.job.outcome"], dead.status.description) == ("dead", "bad address")


async def test_a_trace_that_is_not_sampled_is_followed_and_not_kept(url):
    with spans_of(sampler=ParentBased(ALWAYS_OFF)) as spans:
        hf = Holdfast(url)
        seen = []

        @hf.task
        async def see() -> None:
            seen.append(otel.get_current_span().get_span_context())

        async with hf:
            handle = await see.enqueue()
            with within(trace=CLIENT):
                sampled = await see.enqueue()
            async with hf.worker():
                await is_over(handle)
                await is_over(sampled)
            record = await handle.record()
    assert record.trace.endswith("-00")
    assert [each.trace_flags.sampled for each in seen] == [False, True]
    assert {each.context.trace_id for each in spans.all} == {int(CLIENT.split("-")[1], 16)}
    assert [each.name.split()[0] for each in spans.all] == ["send", "process"]


async def test_spans_of_the_program_are_parents_and_children(url, spans):
    hf = Holdfast(url)
    tracer = spans.provider.get_tracer("shop")

    @hf.task(name="inner")
    async def inner() -> None: ...

    @hf.task(name="outer")
    async def outer() -> None:
        with tracer.start_as_current_span("own"):
            await inner.enqueue()

    async with hf:
        with tracer.start_as_current_span("request"):
            handle = await outer.enqueue()
            async with hf.worker():  # it does not become the parent of what the worker runs
                await is_over(handle)
                await until(lambda: spans.called("process inner"))
    assert parent(spans.one("send outer")) == own(spans.one("request"))
    assert parent(spans.one("own")) == own(spans.one("process outer"))
    assert parent(spans.one("send inner")) == own(spans.one("own"))
    assert not spans.called("publish")


async def test_plain_functions_in_threads_have_their_span(url, spans):
    hf = Holdfast(url)
    seen = []

    @hf.task(name="inner")
    def inner() -> None: ...

    @hf.task(name="plain")
    def plain(job: Job) -> None:
        seen.append(otel.get_current_span().get_span_context().span_id)
        inner.enqueue_sync()
        job.blocking.step("look", lambda: seen.append(otel.get_current_span().get_span_context().span_id))

    async with hf:
        handle = await plain.enqueue()
        async with hf.worker():
            await is_over(handle)
    assert seen[0] == own(spans.one("process plain")) == parent(spans.one("send inner"))
    assert parent(spans.one("step look")) == seen[0]
    assert seen[1] == own(spans.one("step look"))


async def test_a_request_hands_on_the_trace_of_its_client(url, spans):
    hf = Holdfast(url)

    @hf.task(name="place")
    async def place() -> None: ...

    async def app(scope, receive, send):
        await place.enqueue()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async with hf:
        transport = httpx.ASGITransport(app=Correlation(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as client:
            await client.post("/", headers={"traceparent": CLIENT, "x-correlation-id": "order-7"})
            await client.post("/")
    told, free = spans.called("send place")
    assert f"{parent(told):016x}" == CLIENT.split("-")[2]
    assert told.attributes["holdfast.correlation_id"] == "order-7"
    assert free.parent is None, "and it is sampled as the tracer says"


async def test_a_guarded_client_tells_the_other_side(url, spans):
    hf = Holdfast(url)
    bank = hf.guard("bank")
    asked = []

    def answer(request):
        asked.append(request.headers.get("traceparent"))
        return httpx.Response(204)

    transport = GuardedTransport(bank, httpx.MockTransport(answer))
    async with httpx.AsyncClient(transport=transport, base_url="http://bank.test") as client:
        await client.get("/")
        await client.get("/", headers={"traceparent": CLIENT})
    first, _ = spans.called("call bank")
    assert asked == [f"00-{first.context.trace_id:032x}-{own(first):016x}-01", CLIENT]


async def test_lines_of_the_log_name_their_span(url, spans):
    hf, log = Holdfast(url), logging.getLogger("shop")
    as_json, as_text = io.StringIO(), io.StringIO()
    for stream, form in ((as_json, JsonFormatter()), (as_text, ConsoleFormatter())):
        handler = logging.StreamHandler(stream)
        handler.setFormatter(form)
        log.addHandler(handler)

    @hf.task(name="say")
    async def say() -> None:
        log.warning("hello")

    try:
        log.warning("outside")
        async with hf:
            handle = await say.enqueue()
            async with hf.worker():
                await is_over(handle)
    finally:
        log.handlers.clear()
    outside, inside = map(json.loads, as_json.getvalue().splitlines())
    run = spans.one("process say").context
    assert "trace_id" not in outside
    assert "span_id" not in outside
    assert (inside["trace_id"], inside["span_id"]) == (f"{run.trace_id:032x}", f"{run.span_id:016x}")
    ends = f"trace_id={run.trace_id:032x} span_id={run.span_id:016x}"
    assert [line.endswith(ends) for line in as_text.getvalue().splitlines()] == [False, True]


async def test_a_trace_that_nobody_takes_is_handed_on(url):
    """No SDK: no spans, and the traceparent of the request goes from job to job as without us."""
    stop = traces()
    hf = Holdfast(url)

    @hf.task(name="inner")
    async def inner() -> None: ...

    @hf.task(name="outer")
    async def outer() -> str:
        return (await inner.enqueue()).id

    try:
        async with hf:
            with within(trace=CLIENT):
                handle = await outer.enqueue()
            async with hf.worker():
                record = await hf.jobs.get(await handle.result(10))
    finally:
        stop()
    assert record.trace == CLIENT


class Broken(SpanProcessor):
    def on_start(self, span, parent_context=None):
        if "process" in span.name:
            raise RuntimeError("no room")

    def on_end(self, span):
        raise RuntimeError("no room")


async def test_an_sdk_that_fails_stands_in_nobodys_way(url, caplog):
    with spans_of() as spans:
        spans.provider.add_span_processor(Broken())
        hf = Holdfast(url)

        @hf.task(name="inner")
        async def inner(job: Job) -> None:
            await job.step("look", str)

        async with hf:
            handle = await inner.enqueue()
            async with hf.worker():
                await is_over(handle)
                record = await handle.record()
    assert record.attempt == 1
    assert "a span is missing, or is not what it should be: RuntimeError('no room')" in caplog.text


def test_nothing_is_imported_unless_it_is_asked_for():
    told = "import sys, holdfast, holdfast.observe, holdfast.web; print([n for n in sys.modules if n.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_environment_can_ask_for_it(monkeypatch, tmp_path):
    told = "import sys, holdfast; holdfast.Holdfast(); from holdfast.kernel.tracing import is_traced; print(is_traced())"
    for asked, said in (("on", "True"), ("off", "False"), ("", "False")):
        monkeypatch.setenv("HOLDFAST_TRACES", asked)
        done = subprocess.run(
            [sys.executable, "-c", told], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        assert done.stdout.strip() == said
    monkeypatch.setenv("HOLDFAST_TRACES", "yes please")
    with pytest.raises(UsageError, match="HOLDFAST_TRACES is on or off"):
        Holdfast()


def test_a_provider_is_one():
    with pytest.raises(UsageError, match="TracerProvider"):
        traces("http://collector:4318")
