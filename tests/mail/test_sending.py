"""Mails reach a real SMTP server once; what it refuses is sorted; a lost answer costs at most a second mail of the same name."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Backoff, Holdfast, Job
from holdfast.errors import JobDead, UsageError
from holdfast.kernel.masking import masked
from holdfast.mail import Delivery, MailSettings, Refusal
from holdfast.store.states import State
from holdfast.testing import drain


async def test_a_mail_arrives_as_it_was_written(mailing, server):
    sent = await mailing.mail.send(
        to="Ada Lovelace <ada@example.org>", subject="Grüezi", text="Hello,\n.\nthere", html="<p>Hello</p>",
        reply_to="help@example.org", headers={"X-Campaign": "welcome"},
    )  # fmt: skip
    [ran] = await drain(mailing)
    assert ran.state is State.SUCCEEDED
    [mail] = server.taken
    assert mail.recipient == "ada@example.org"
    message = mail.message
    assert message["From"] == "Shop <shop@example.org>"
    assert message["To"] == "Ada Lovelace <ada@example.org>"
    assert message["Subject"] == "Grüezi"
    assert message["X-Campaign"] == "welcome"
    assert message["Message-ID"] == sent.message_id
    assert sent.message_id.endswith("@example.org>")
    assert message.get_body(("plain",)).get_content().splitlines() == ["Hello,", ".", "there"]
    assert message.get_body(("html",)).get_content().strip() == "<p>Hello</p>"
    assert await sent.handles[0].result() == sent.message_id


async def test_each_recipient_is_a_job_of_its_own_and_the_hidden_ones_stay_hidden(mailing, server):
    sent = await mailing.mail.send(
        to=["a@example.org", "b@example.org"], cc="c@example.org", bcc=["hidden@example.org", "a@example.org"],
        subject="Hi", text="Hi",
    )  # fmt: skip
    await drain(mailing)
    assert sorted(each.recipient for each in server.taken) == [
        f"{name}@example.org" for name in ("a", "b", "c", "hidden")
    ]
    assert set(server.ids()) == {sent.message_id}
    assert all("hidden@" not in str(each.message) for each in server.taken)


async def test_a_mail_exists_if_and_only_if_the_transaction_commits(mailing, server):
    with pytest.raises(RuntimeError):
        async with mailing.transaction() as tx:
            await mailing.mail.send(to="a@example.org", subject="No", text="no", tx=tx)
            raise RuntimeError
    async with mailing.transaction() as tx:
        await mailing.mail.send(to="a@example.org", subject="Yes", text="yes", tx=tx)
    await drain(mailing)
    assert [each.message["Subject"] for each in server.taken] == ["Yes"]


async def test_a_mail_of_a_job_is_not_sent_again_by_later_attempts(mailing, server, manual_clock):
    ids = []

    @mailing.task(name="welcome", retry=Backoff(attempts=3, first=60))
    async def welcome(job: Job) -> None:
        ids.append((await mailing.mail.send(job, to="a@example.org", subject="One", text="1")).message_id)
        await mailing.mail.send(job, name="second", to="a@example.org", subject="Two", text="2")
        if job.attempt == 1:
            raise ConnectionError("later")

    await welcome.enqueue()
    await drain(mailing)
    manual_clock.advance(3_600)
    await drain(mailing)
    assert len(ids) == 2
    assert ids[0] == ids[1]
    assert sorted(each.message["Subject"] for each in server.taken) == ["One", "Two"]


async def test_two_mails_of_a_job_need_two_names(mailing):
    @mailing.task(name="twice")
    async def twice(job: Job) -> None:
        await mailing.mail.send(job, to="a@example.org", subject="One", text="1")
        await mailing.mail.send(job, to="a@example.org", subject="Two", text="2")

    handle = await twice.enqueue()
    await drain(mailing)
    assert "mail" in (await handle.record()).errors[0].error


async def test_the_server_dies_after_data_and_a_second_mail_has_the_same_name(mailing, server, until_over):
    died = []
    server.faults.die_after_data = lambda who: len(died) < 1 and not died.append(who)
    sent = await mailing.mail.send(to="a@example.org", subject="Hi", text="Hi")
    await until_over(sent)
    assert server.ids() == [sent.message_id] * 2
    first, second = (each.message.as_bytes() for each in server.taken)
    assert first == second, "whoever compares them sees that they are one"


async def test_what_is_refused_for_now_is_sent_later(mailing, server, until_over):
    server.faults.on_rcpt["a@example.org"] = "450 4.2.0 greylisted, a@example.org"
    sent = await mailing.mail.send(to=["a@example.org", "b@example.org"], subject="Hi", text="Hi")
    await drain(mailing)
    assert [each.recipient for each in server.taken] == ["b@example.org"]
    record = await sent.handles[0].record()
    assert record.state is State.QUEUED
    assert "450" in record.errors[0].error
    assert "a@example.org" not in record.errors[0].error, "masked"
    del server.faults.on_rcpt["a@example.org"]
    await until_over(sent)
    assert sorted(each.recipient for each in server.taken) == ["a@example.org", "b@example.org"]


async def test_what_is_refused_for_good_is_dead_and_can_be_replayed(mailing, server):
    server.faults.on_rcpt["a@example.org"] = "550 5.1.1 no such user"
    sent = await mailing.mail.send(to="a@example.org", subject="Hi", text="Hi")
    await drain(mailing)
    with pytest.raises(JobDead, match=r"550 5\.1\.1 no such user"):
        await sent.handles[0].result(timeout=1)
    del server.faults.on_rcpt["a@example.org"]
    await mailing.dead.replay([sent.handles[0].id], actor="ada")
    await drain(mailing)
    assert server.ids() == [sent.message_id]


async def test_a_program_hears_of_what_is_refused_for_good(mailing, server):
    async with mailing.transaction() as tx:
        await tx.execute("CREATE TABLE bounced (about TEXT, code INTEGER)")

    @mailing.mail.on_refused
    async def bounced(refusal: Refusal, tx) -> None:
        await tx.execute("INSERT INTO bounced VALUES ($1, $2)", refusal.about, refusal.code)

    try:
        server.faults.on_data = "554 5.7.1 spam"
        sent = await mailing.mail.send(to="a@example.org", subject="Hi", text="Hi", about="application:42")
        await drain(mailing)
        async with mailing.transaction() as tx:
            assert await tx.fetch("SELECT about, code FROM bounced") == [("application:42", 554)]
        assert await sent.handles[0].status() is State.SUCCEEDED
    finally:
        async with mailing.transaction() as tx:
            await tx.execute("DROP TABLE bounced")


async def test_a_program_hears_of_what_was_sent_in_one_commit_with_it(mailing, server):
    async with mailing.transaction() as tx:
        await tx.execute("CREATE TABLE gone_out (about TEXT, recipient TEXT, message_id TEXT)")
    raising = [True]

    @mailing.mail.on_sent
    async def gone(delivery: Delivery, tx) -> None:
        row = delivery.about, delivery.recipient, delivery.message_id
        await tx.execute("INSERT INTO gone_out VALUES ($1, $2, $3)", *row)
        if raising.pop() if raising else False:
            raise ConnectionError("after the row was written")

    try:
        sent = await mailing.mail.send(to="a@example.org", subject="Hi", text="Hi", about="application:42")
        await drain(mailing)  # its handler fails: nothing is written, and the mail is not sent again for it
        async with mailing.transaction() as tx:
            assert await tx.fetch("SELECT * FROM gone_out") == []
        await mailing.jobs.move(sent.handles[0].id, delay=0)
        await drain(mailing)
        async with mailing.transaction() as tx:
            assert await tx.fetch("SELECT * FROM gone_out") == [
                ("application:42", "a@example.org", sent.message_id)
            ]
        assert server.ids() == [sent.message_id]
        assert await sent.handles[0].status() is State.SUCCEEDED
    finally:
        async with mailing.transaction() as tx:
            await tx.execute("DROP TABLE gone_out")


async def test_a_mail_of_higher_priority_goes_first(mailing, server):
    await mailing.mail.send(to="a@example.org", subject="Letter", text="Hi", priority=-5)
    await mailing.mail.send(to="a@example.org", subject="Login", text="Hi", priority=50)
    await drain(mailing)
    assert [each.message["Subject"] for each in server.taken] == ["Login", "Letter"]


async def test_addresses_and_texts_are_masked_in_listings(mailing, server):
    sent = await mailing.mail.send(to="ada@example.org", subject="Secret", text="reset link")
    shown = masked((await sent.handles[0].record()).args)
    assert shown["to"] == "a…@example.org"
    assert "ada@example.org" not in str(shown)
    assert "reset link" not in str(shown)
    assert "Secret" not in str(shown)


async def test_lines_name_the_mail_and_say_nothing_of_it(mailing, server, caplog):
    """A subject of one letter is a secret, too, and must not make ids unreadable."""
    caplog.set_level("DEBUG", logger="holdfast")
    server.faults.on_rcpt["bob@example.org"] = "550 5.1.1 no such user"
    for to in ("ada@example.org", "bob@example.org"):
        sent = await mailing.mail.send(to=to, subject="1", text="c4nary")
        await drain(mailing)
        lines = [record.getMessage() for record in caplog.records if record.name == "holdfast.mail"]
        assert sent.message_id in lines[-1]
        assert f"{to[0]}…@example.org" in lines[-1]
        assert all(sent.handles[0].id in each for each in lines[-1:])
    assert "c4nary" not in caplog.text
    assert "bob@" not in caplog.text


async def test_a_server_that_hangs_is_given_up_and_asked_again(url, server):
    server.faults.hang = True
    settings = MailSettings(url=server.url, sender="shop@example.org", timeout=0.5)
    async with Holdfast(url, mail=settings) as hf:
        sent = await hf.mail.send(to="a@example.org", subject="Hi", text="Hi")
        await drain(hf)
        record = await sent.handles[0].record()
        assert record.state is State.QUEUED
        assert record.attempt == 1
        assert server.ids() == [sent.message_id]


async def test_mails_wait_for_a_server_that_is_away(mailing, server, until_over):
    server.stop()
    sent = [
        await mailing.mail.send(to=f"a{number}@example.org", subject="Hi", text="Hi") for number in range(8)
    ]
    ran = await drain(mailing)
    assert ran
    assert all(each.state is State.QUEUED for each in ran)
    records = [await each.handles[0].record() for each in sent]
    assert all(each.attempt <= 1 for each in records)
    assert any(each.attempt == 0 for each in records), "once the breaker is open, no attempt is charged"
    server.start()
    await until_over(*sent)
    assert sorted(server.ids()) == sorted(each.message_id for each in sent)


async def test_without_settings_it_says_how(hf):
    with pytest.raises(UsageError, match="HOLDFAST_MAIL_URL"):
        await hf.mail.send(to="a@example.org", subject="Hi", text="Hi")


async def test_threads_send_too(mailing, server):
    sent = await asyncio.to_thread(
        lambda: mailing.blocking.mail.send(to="a@example.org", subject="Hi", text="Hi")
    )
    await drain(mailing)
    assert server.ids() == [sent.message_id]
