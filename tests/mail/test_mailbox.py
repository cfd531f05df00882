"""Programs are tested with a mailbox instead of a server; in development mails are files."""

from __future__ import annotations

from email import message_from_bytes, policy

import pytest

from holdfast import Holdfast
from holdfast.errors import UsageError
from holdfast.mail import MailSettings
from holdfast.store.states import State
from holdfast.testing import drain, inline, mailbox


async def test_a_mailbox_gets_what_is_sent(hf):
    with mailbox(hf) as box:
        sent = await hf.mail.send(to="ada@example.org", subject="Hi", text="Hello")
        assert box.received == []
        await drain(hf)
        [mail] = box.of("ada@example.org")
        assert (mail.subject, mail.text, mail.html, mail.message_id) == ("Hi", "Hello", None, sent.message_id)
        assert b"Subject: Hi" in mail.raw
    with pytest.raises(UsageError, match="HOLDFAST_MAIL_URL"):
        await hf.mail.send(to="ada@example.org", subject="Hi", text="Hello")


async def test_a_mailbox_refuses_and_loses_answers(hf):
    with mailbox(hf) as box:
        box.refuse("no@example.org")
        box.refuse("later@example.org", 450)
        box.lose_answer("lost@example.org")
        with inline(hf) as ran:
            for name in ("no", "later", "lost"):
                await hf.mail.send(to=f"{name}@example.org", subject="Hi", text="Hello")
        assert [each.state for each in ran] == [State.DEAD, State.QUEUED, State.QUEUED]
        assert [each.to for each in box.received] == ["lost@example.org"]


async def test_mails_are_files_in_development(url, tmp_path):
    async with Holdfast(url, mail=MailSettings(url=f"file:{tmp_path}/out", sender="shop@example.org")) as hf:
        sent = await hf.mail.send(to="ada@example.org", bcc="b@example.org", subject="Grüezi", text="Hello")
        await drain(hf)
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 2
    assert {file.suffix for file in files} == {".eml"}
    messages = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in files]
    assert {message["Message-ID"] for message in messages} == {sent.message_id}
    assert {message["X-Envelope-To"] for message in messages} == {"ada@example.org", "b@example.org"}
    assert messages[0]["Subject"] == "Grüezi"


async def test_a_folder_that_cannot_be_written_is_tried_again(url, tmp_path):
    (tmp_path / "out").write_text("a file")
    async with Holdfast(url, mail=MailSettings(url=f"file:{tmp_path}/out", sender="shop@example.org")) as hf:
        await hf.mail.send(to="ada@example.org", subject="Hi", text="Hello")
        [ran] = await drain(hf)
        assert ran.state is State.QUEUED
