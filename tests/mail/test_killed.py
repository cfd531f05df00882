"""Workers are killed while they hand mails over, and the server dies under them: no mail is lost, and none gets a third copy for one kill."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter

import pytest

from holdfast import Holdfast
from holdfast.mail import MailSettings

PROGRAM = """
from holdfast import Holdfast
from holdfast.mail import MailSettings
hf = Holdfast({url!r}, mail=MailSettings(url={mail!r}, sender="shop@example.org", timeout=5, rest=0.5))
"""
MANY = int(os.environ.get("HOLDFAST_TEST_MAILS", "60"))


async def started(folder):
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", "worker", "mailing:hf", "--lease", "1", "--shutdown-timeout", "3",
        cwd=folder, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip


async def ended(worker, signal_number=signal.SIGINT):
    if worker.returncode is None:
        worker.send_signal(signal_number)
    await asyncio.wait_for(worker.wait(), 30)


async def until(found, what, limit=60):
    async with asyncio.timeout(limit):
        while not found():
            await asyncio.sleep(0.02)
    assert found(), what


@pytest.fixture
async def program(url, server, tmp_path):
    (tmp_path / "mailing.py").write_text(PROGRAM.format(url=url, mail=server.url))
    async with Holdfast(url, mail=MailSettings(url=server.url, sender="shop@example.org")) as hf:
        yield hf


async def test_a_worker_killed_after_data_sends_at_most_one_more_of_the_same_name(program, server, tmp_path):
    server.faults.hang = True  # it has the mail, and the worker has no answer yet
    sent = await program.mail.send(to="ada@example.org", subject="Hi", text="Hi")
    worker = await started(tmp_path)
    await until(lambda: server.taken, "the first worker hands it over")
    await ended(worker, signal.SIGKILL)
    server.faults.hang = False
    worker = await started(tmp_path)
    try:
        assert await sent.handles[0].result(timeout=40) == sent.message_id
    finally:
        await ended(worker)
    assert server.ids() == [sent.message_id] * 2


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # sockets of the server that died
async def test_no_mail_is_lost_while_the_server_dies(program, server, tmp_path):
    """It dies after a mail now and then, and is away altogether for a while. In between somebody says that mails may go again."""
    seen = Counter()

    def dies(recipient):
        seen[recipient] += 1
        return sum(seen.values()) % 25 == 7

    server.faults.die_after_data = dies
    sent = [
        await program.mail.send(to=f"a{number}@example.org", subject=f"{number}", text="Hi")
        for number in range(MANY)
    ]
    worker = await started(tmp_path)
    try:
        await until(lambda: len(set(server.ids())) >= MANY // 3, "a third is there", limit=300)
        server.stop()
        await asyncio.sleep(1)
        server.start()
        async with asyncio.timeout(500):
            while len(set(server.ids())) < MANY:
                await asyncio.sleep(0.5)
                await hurry(program)
    finally:
        await ended(worker)
    counted = Counter(server.ids())
    assert counted.keys() == {each.message_id for each in sent}
    died = sum(seen.values()) // 25 + 1
    second = sum(number - 1 for number in counted.values())
    assert second <= died + 10, (
        "a second mail only where an answer was lost: the ten that were under way count too"
    )
    print(f"{MANY} mails, {len(counted)} arrived, {second} a second time")  # noqa: T201


async def hurry(hf):
    """Mails wait for minutes after a failure, and a breaker for half of one: a test does not."""
    async with hf.transaction() as tx:
        if hf.store.__class__.__name__.startswith("Sqlite"):
            await tx.execute("UPDATE holdfast_queued SET run_at = 0 WHERE held = 'time'")
        else:
            await tx.execute("UPDATE holdfast.job SET run_at = '2000-01-01' WHERE state = 'queued'")
