"""Alerts by real workers and a real receiver: told once, told at last, over once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress

import pytest
from alert_kit import SECRET, Receiver, hurry, until

from holdfast import Event, Holdfast, Reject
from holdfast.errors import BreakerOpen, UsageError
from holdfast.guards import Breaker
from holdfast.mail import MailSettings
from holdfast.observe import Alert, AlertSettings
from holdfast.runtime.alerting import QUEUE
from holdfast.store.states import State
from holdfast.testing import fresh, mailbox

AWAY = float(os.environ.get("HOLDFAST_TEST_CHANNEL_AWAY", "3"))  # seconds; `=120` is the long form


@pytest.fixture
def receiver():
    running = Receiver()
    yield running
    running.stop()
    assert running.wrong == []


def settings(receiver=None, **options):
    said = {"every": 0.1, "calm": 0.3, "timeout": 2.0}
    if receiver is not None:
        said |= {"webhook": receiver.url, "secret": SECRET}
    return AlertSettings(**{**said, **options})


def shop(url, receiver=None, **options):
    """A program with a task whose jobs die while `broken` is set."""
    hf = Holdfast(url, alerts=settings(receiver, **options))
    hf.broken = asyncio.Event()
    hf.broken.set()

    @hf.task(name="mail.send")
    async def send(number: int) -> None:
        if hf.broken.is_set():
            raise Reject("refused for good")

    hf.send = send
    return hf


async def put_dead(hf, number):
    await hf.send.enqueue_many([{"number": each} for each in range(number)])


async def dead(hf):
    return sum(each.number for each in (await hf.store.alerts.look(patience=0)).seen if each.kind == "dead")


# --- what is promised ---


async def test_five_hundred_dead_letters_of_one_cause_are_one_alert_and_one_over(url, receiver):
    async with shop(url, receiver) as hf, hf.worker({"default": 20}), hf.worker({"default": 20}):
        await put_dead(hf, 500)
        await until(lambda: receiver.taken, "it is told")
        async with asyncio.timeout(60):
            while await dead(hf) < 500:
                await asyncio.sleep(0.05)
        await asyncio.sleep(1.0)  # ten looks
        assert receiver.told() == [("dead", "mail.send", "opened")]
        hf.broken.clear()
        while ids := [each.id for each in await hf.store.jobs.find(state=State.DEAD, limit=500)]:
            await hf.dead.replay(ids, actor="ada")
        await until(lambda: len(receiver.told()) > 1, "it is over")
        await asyncio.sleep(1.0)
        assert receiver.told() == [("dead", "mail.send", "opened"), ("dead", "mail.send", "over")]
        assert len(receiver.taken) == 2
        [opened, over] = [alert for _, alert in receiver.taken]
        assert opened.id == over.id
        assert over.opened_at == opened.at < over.at


@pytest.mark.timeout(600)
async def test_a_channel_that_is_away_loses_none(url, receiver):
    """Causes begin and end meanwhile. HOLDFAST_TEST_CHANNEL_AWAY=120 is an outage of two minutes."""
    async with shop(url, receiver) as hf, hf.worker():
        await hf.alerts.raise_("login", "user:0")
        await until(lambda: receiver.taken, "it is told")
        receiver.stop()
        end, number = time.monotonic() + AWAY, 0
        while time.monotonic() < end:
            number += 1
            await hf.alerts.raise_("login", f"user:{number}")
            if number > 2:
                await hf.alerts.over("login", f"user:{number - 2}")
            await asyncio.sleep(max(0.5, AWAY / 40))
        receiver.start()
        for each in range(number + 1):
            await hf.alerts.over("login", f"user:{each}")
        wanted = {
            ("login", f"user:{each}", state) for each in range(number + 1) for state in ("opened", "over")
        }
        async with asyncio.timeout(300):
            while set(receiver.told()) != wanted:
                await asyncio.sleep(0.2)
                if AWAY < 60:
                    await hurry(hf)
        assert Counter(receiver.told()).most_common(1)[0][1] == 1, "each message once"
        assert len(receiver.taken) == len(wanted), "an answer was never lost, so nothing came twice"
        for each in range(number + 1):
            states = [alert.state for _, alert in receiver.taken if alert.cause == f"user:{each}"]
            assert states == ["opened", "over"], "the messages of one alert come in order"


async def test_a_message_whose_answer_was_lost_comes_again_with_the_same_id(url, receiver):
    lost = iter([True, True])
    receiver.loses_answer = lambda: next(lost, False)
    async with shop(url, receiver) as hf, hf.worker():
        await hf.alerts.raise_("login", "user:7")
        async with asyncio.timeout(30):
            while len(receiver.taken) < 3:
                await hurry(hf)
                await asyncio.sleep(0.1)
        assert len({delivery for delivery, _ in receiver.taken}) == 1
        assert receiver.told() == [("login", "user:7", "opened")]


async def refund(paid: int) -> None:
    raise Reject("the bank says no")


PROGRAM = """
import os, signal
from holdfast import Holdfast
from holdfast.kernel.crashpoints import CRASHPOINTS, _armed
from holdfast.observe import AlertSettings

hf = Holdfast({url!r}, alerts=AlertSettings(webhook={webhook!r}, secret={secret!r}, every=0.1, calm=0.3))
if os.environ.get("KILL_AT"):
    _armed[os.environ["KILL_AT"]] = lambda name: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("at", ["alerts.before_commit", "transaction.after_commit"])
async def test_the_leader_is_killed_around_its_commit(url, receiver, tmp_path, at):
    (tmp_path / "alerting.py").write_text(PROGRAM.format(url=url, webhook=receiver.url, secret=SECRET))

    async def worker(**variables):
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "holdfast", "worker", "alerting:hf", "--lease", "1", cwd=tmp_path,
            env={**os.environ, **variables}, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip

    async with Holdfast(url) as hf:
        await hf.alerts.raise_("login", "user:7")
        victim = await worker(KILL_AT=at)
        assert await asyncio.wait_for(victim.wait(), 30) == -signal.SIGKILL
        assert len(await hf.alerts.list()) == (0 if at == "alerts.before_commit" else 1)
        heir = await worker()
        try:
            await until(lambda: receiver.taken, "it is told after all")
            await asyncio.sleep(1)
            assert receiver.told() == [("login", "user:7", "opened")]
            assert len(receiver.taken) == 1
        finally:
            heir.send_signal(signal.SIGINT)
            await asyncio.wait_for(heir.wait(), 30)


async def test_two_that_lead_at_once_tell_nothing_twice(url):
    """One stands still between its look and its commit, for longer than its lease; another leads meanwhile."""
    heard = []
    async with shop(url) as hf:

        @hf.on_alert
        async def hear(alert: Alert) -> None:
            heard.append((alert.cause, alert.state))

        first, second = [hf.alerts.services(f"w{number}", 1.0)[0] for number in (1, 2)]
        lease = await hf.store.leases.acquire("holdfast:alerts", owner="w1", ttl=0.5)
        await hf.alerts.raise_("login", "user:7")
        look = first._looker.look

        async def slow_look():
            found = await look()
            await asyncio.sleep(1)
            other = await hf.store.leases.acquire("holdfast:alerts", owner="w2", ttl=5)
            await second.turn(other)
            return found

        first._looker.look = slow_look
        assert not await first.turn(lease), "it sees what the other has kept"
        first._looker.look = look
        await hf.alerts.raise_("login", "user:8")
        with pytest.raises(Exception, match="the lease 'holdfast:alerts' is over"):
            await first.turn(lease)
        async with hf.worker():  # it leads when the lease of the second is over
            await until(lambda: len(heard) == 2, "both are told")
            await asyncio.sleep(0.5)
        assert sorted(heard) == [("user:7", "opened"), ("user:8", "opened")]


# --- what is seen ---


async def until_over(receiver, guard):
    """A call that goes well closes a breaker, once it is let through."""

    async def work():
        return 1

    async with asyncio.timeout(60):
        while ("breaker", "stripe", "over") not in receiver.told():
            with suppress(BreakerOpen):
                await guard.call(work)
            await asyncio.sleep(0.1)


async def test_an_open_breaker_is_told_until_it_is_closed(url, receiver):
    async with shop(url, receiver) as hf, hf.worker():
        stripe = hf.guard("stripe", breaker=Breaker(failures=1, cooldown=0.5, permits=1))

        async def fail():
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await stripe.call(fail)
        await until(lambda: receiver.told() == [("breaker", "stripe", "opened")], "it is told")

        await until_over(receiver, stripe)


async def test_a_breaker_that_a_person_holds_open_is_told(url, receiver):
    async with shop(url, receiver) as hf, hf.worker():
        stripe = hf.guard("stripe", breaker=Breaker(failures=1, cooldown=0.2, permits=1))
        await hf.store.guards.hold("stripe", "open", actor="ada")
        await until(lambda: receiver.told() == [("breaker", "stripe", "opened")], "it is told")
        await hf.store.guards.let_go("stripe", actor="ada")
        await until_over(receiver, stripe)


async def test_a_breaker_whose_guards_meet_on_redis_is_told(tmp_path, receiver, own_valkey):
    hf = Holdfast(f"sqlite:///{tmp_path / 'a.db'}", guards=own_valkey.url, alerts=settings(receiver))
    async with hf, hf.worker():
        stripe = hf.guard("stripe", breaker=Breaker(failures=1, cooldown=0.5, permits=1))

        async def fail():
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await stripe.call(fail)
        await until(lambda: receiver.told() == [("breaker", "stripe", "opened")], "it is told")
        await until_over(receiver, stripe)


async def test_what_waits_is_told_though_its_queue_is_stuck(url, receiver):
    """The one slot of the worker is taken for good, and nobody relays events."""
    async with shop(url, receiver, waiting=1.0) as hf:
        stuck = asyncio.Event()

        @hf.task(name="wait")
        async def wait() -> None:
            await stuck.wait()

        async with hf.worker({"default": 1}):
            await wait.enqueue_many([{}, {}, {}])
            await until(lambda: receiver.told() == [("waiting", "default", "opened")], "it is told")
            stuck.set()
            await until(lambda: len(receiver.told()) == 2, "it is over")


async def test_events_that_nobody_relays_are_told(url, receiver):
    async with shop(url, receiver, lag=1.0) as hf:
        hf.event("order.placed", dict, unheard=True)
        assert await hf.store.leases.acquire("holdfast:relay", owner="one that hangs", ttl=60)
        await hf.emit("order.placed", {"id": 1})
        async with hf.worker():
            await until(lambda: receiver.told() == [("outbox_lag", "outbox", "opened")], "it is told")
            [(_, alert)] = receiver.taken
            assert "1" not in alert.cause


async def test_a_view_that_is_behind_is_told(url, receiver):
    async with shop(url, receiver, lag=1.0) as hf:

        @hf.view("orders", on="order.*", key="id")
        def orders(row: dict | None, event: Event) -> dict | None:
            return {"seen": True}

        async with hf.worker():
            await hf.emit("order.placed", {"id": "1"})
            async with asyncio.timeout(30):
                while not await hf.store.views.get("orders", "1"):
                    await asyncio.sleep(0.05)
        assert await hf.store.leases.acquire("holdfast:view:orders", owner="one that hangs", ttl=60)
        async with hf.worker():
            await hf.emit("order.placed", {"id": "2"})
            await until(lambda: ("view_lag", "orders", "opened") in receiver.told(), "it is told")


async def test_a_saga_that_needs_a_person_is_told(url, receiver):
    async with shop(url, receiver) as hf:

        @hf.saga("order")
        async def order(saga, number: int) -> None:
            async def pay() -> int:
                return 1

            async def ship() -> None:
                raise Reject("nothing left")

            await saga.step("pay", pay, undo=refund)
            await saga.step("ship", ship)

        async with hf.worker():
            await order.start(1, id="order:1")
            await until(
                lambda: ("needs_operator", "order", "opened") in receiver.told(), "it is told", limit=60
            )


async def test_a_credential_that_expires_is_told_and_over_when_it_is_renewed(url, receiver):
    async with shop(url, receiver) as hf, hf.worker():
        now = await hf.store.now()
        await hf.alerts.expires("deviantart:user:7", at=now + 3600, notice=7200)
        await hf.alerts.expires("deviantart:user:8", at=now + 3600, notice=60)
        await until(lambda: receiver.told() == [("expiring", "deviantart:user:7", "opened")], "it is told")
        await hf.alerts.expires("deviantart:user:7", at=now + 90_000, notice=7200)
        await until(lambda: len(receiver.told()) == 2, "it is over")
        assert receiver.told()[1] == ("expiring", "deviantart:user:7", "over")


async def test_what_is_raised_counts_when_its_transaction_commits(url, receiver):
    async with shop(url, receiver) as hf, hf.worker():
        with pytest.raises(RuntimeError):
            async with hf.transaction() as tx:
                await hf.alerts.raise_("login", "user:1", tx=tx)
                raise RuntimeError
        async with hf.transaction() as tx:
            await hf.alerts.raise_("login", "user:2", tx=tx)
        await until(lambda: receiver.told() == [("login", "user:2", "opened")], "it is told")


# --- whom it is told ---


async def test_handlers_of_every_form_are_told(url):
    heard = Counter()
    async with shop(url) as hf:

        @hf.on_alert
        async def one(alert: Alert) -> None:
            heard["async", alert.state] += 1

        @hf.on_alert
        def two(alert: Alert) -> None:
            heard["plain", alert.state] += 1

        @hf.on_alert(name="rows")
        async def three(alert, tx) -> None:
            await tx.execute("INSERT INTO told (what) VALUES ($1)", "async")

        @hf.on_alert
        def four(alert, tx) -> None:
            tx.execute("INSERT INTO told (what) VALUES ($1)", "plain")

        async with hf.transaction() as tx:
            await tx.execute("CREATE TABLE told (what text)")
        async with hf.worker():
            await hf.alerts.raise_("login", "user:7")
            await until(lambda: sum(heard.values()) == 2, "those without a transaction are told")
            async with asyncio.timeout(30):
                while len(rows := await told_rows(hf)) < 2:
                    await asyncio.sleep(0.05)
        assert sorted(rows) == [("async",), ("plain",)]
        assert set(heard) == {("async", "opened"), ("plain", "opened")}


async def told_rows(hf):
    async with hf.transaction() as tx:
        return await tx.fetch("SELECT what FROM told")


async def test_one_that_fails_repeats_none_of_the_others(url, receiver):
    tries = []
    async with shop(url, receiver) as hf:

        @hf.on_alert
        async def fail(alert: Alert) -> None:
            tries.append(alert)
            raise ConnectionError

        async with hf.worker():
            await hf.alerts.raise_("login", "user:7")
            async with asyncio.timeout(30):
                while len(tries) < 4:
                    await hurry(hf)
                    await asyncio.sleep(0.05)
        assert len(receiver.taken) == 1


async def test_under_a_manual_clock_it_is_told_when_the_clock_is_turned(manual_clock, url):
    heard = []
    async with fresh(Holdfast("sqlite:///never-made.db"), url) as hf:

        @hf.on_alert
        async def hear(alert: Alert) -> None:
            heard.append((alert.cause, alert.state))

        async with hf.worker():
            await hf.alerts.raise_("login", "user:7")
            await turned(manual_clock, lambda: heard == [("user:7", "opened")], most=60)
            await hf.alerts.over("login", "user:7")
            await turned(manual_clock, lambda: len(heard) == 2, most=120)
    assert heard == [("user:7", "opened"), ("user:7", "over")]


async def turned(clock, found, *, most):
    for _ in range(most):
        if found():
            return
        clock.advance(1)
        await asyncio.sleep(0.05)
    assert found(), f"not after {most} s"


async def test_mail_is_sent_to_each_address(url):
    mail = MailSettings(url="smtp://localhost:1", sender="shop@example.org")
    hf = Holdfast(url, mail=mail, alerts=settings(mail=["ada@example.org", "eve@example.org"]))
    with mailbox(hf) as box:
        async with hf, hf.worker():
            await hf.alerts.raise_("login", "user:7")
            await until(lambda: len(box.received) == 2, "both are told")
            await asyncio.sleep(0.5)
    assert sorted(each.to for each in box.received) == ["ada@example.org", "eve@example.org"]
    assert {each.subject for each in box.received} == {"[alert] Login, user:7: 1."}


async def test_a_webhook_that_refuses_is_asked_again_and_a_redirect_is_not_followed(url, receiver):
    receiver.status, receiver.extra = 302, {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}
    async with shop(url, receiver) as hf, hf.worker():
        await hf.alerts.raise_("login", "user:7")
        for status in (302, 503, 401):
            receiver.status, asked = status, receiver.asked
            async with asyncio.timeout(30):
                while receiver.asked < asked + 2:
                    await hurry(hf)
                    await asyncio.sleep(0.05)
        receiver.status, receiver.extra = 200, {}
        async with asyncio.timeout(30):
            while not receiver.taken:
                await hurry(hf)
                await asyncio.sleep(0.05)
        assert {path for path, _ in receiver.headers} == {"/alerts?team=ops"}
        assert len({headers["webhook-id"] for _, headers in receiver.headers}) == 1


async def test_without_channels_nothing_runs(url):
    async with Holdfast(url) as hf:
        assert hf.alerts.services("w", 1.0) == ()
        assert hf.alerts.queues({"default": 1}) == {"default": 1}
        assert shop(url).alerts.services("w", 1.0) == ()


async def test_a_worker_serves_what_is_told_beside_its_queues(url, receiver):
    assert shop(url, receiver).alerts.queues({"mail": 1}) == {QUEUE: 2, "mail": 1}
    assert shop(url, receiver).alerts.queues({QUEUE: 5}) == {QUEUE: 5}


async def test_what_is_wrong_is_refused(url):
    async with shop(url) as hf:
        with pytest.raises(UsageError, match="looks for 'dead' by itself"):
            await hf.alerts.raise_("dead", "mail.send")
        for wrong in ("", 5, "a\nb"):
            with pytest.raises(UsageError):
                await hf.alerts.raise_("login", wrong)
        with pytest.raises(UsageError, match="has no time zone"):
            from datetime import datetime

            await hf.alerts.expires("user:7", at=datetime(2030, 1, 1))  # noqa: DTZ001
        for function in (print, lambda: 1, lambda a, b, c: 1, lambda *a: 1):
            with pytest.raises(UsageError):
                hf.on_alert(function)
        hf.on_alert(name="a")(lambda alert: 1)
        with pytest.raises(UsageError, match="Two on_alert handlers are called 'a'"):
            hf.on_alert(name="a")(lambda alert: 2)
    with pytest.raises(UsageError, match="HOLDFAST_MAIL_URL"):
        Holdfast(url, alerts=settings(mail=["ada@example.org"]))


async def test_while_something_cannot_be_seen_the_rest_is_told(url, receiver, monkeypatch):
    async with shop(url, receiver) as hf:

        async def waits(**_):
            raise OSError("no")

        monkeypatch.setattr(hf.store.queues, "waits", waits)
        async with hf.worker():
            await hf.alerts.raise_("login", "user:7")
            await until(lambda: receiver.told() == [("login", "user:7", "opened")], "it is told")


def test_sync_code_raises_and_ends(tmp_path):
    hf = Holdfast(f"sqlite:///{tmp_path / 'a.db'}")
    hf.blocking.alerts.raise_("login", "user:7")
    hf.blocking.alerts.expires("user:7", at=2e9)
    assert hf.blocking.alerts.over("login", "user:7")
    assert not hf.blocking.alerts.over("login", "user:7")
    assert hf.blocking.alerts.list() == []
    hf.blocking.close()
