"""Secrets are in no sink: lines of the log, notes, errors, listings of the command line, the audit log and the trace; on each store."""

from __future__ import annotations

import asyncio
import importlib
import logging

import pytest
from cli_kit import write_program

from holdfast.observe import ConsoleFormatter, JsonFormatter
from holdfast.store.states import State
from holdfast.vault.keyring import new_key

CANARY = "c4nary"
PROGRAM = '''"""A shop."""

from holdfast import Backoff, Holdfast, Job, Secret
from holdfast.mail import MailSettings
from holdfast.vault import Place, SecretValue

ONCE = Backoff(attempts=1)
MAIL = "smtp://ada:c4nary-login@localhost:1"
hf = Holdfast(mail=MailSettings(url=MAIL, sender="shop@example.org", attempts=1), blobs="file:blobs")


@hf.task(name="argument", retry=ONCE)
async def argument(token: Secret[str]) -> None:
    raise ValueError(f"refused {token!r}")


@hf.task(name="step", retry=ONCE)
async def step(job: Job, token: Secret[str]) -> None:
    async def charge() -> None:
        raise ConnectionError({"token": token})

    await job.effect("charge", charge, policy="at_most_once")


@hf.task(name="sealed", retry=ONCE)
async def sealed() -> None:
    secret = SecretValue("c4nary-sealed")
    text = hf.vault.seal(secret, Place("t", "c", "1"))
    raise ValueError("moved", secret, hf.vault.open(text, Place("t", "c", "2")))
'''
LISTINGS = [
    ("jobs", "list"), ("dead", "list"), ("unknown", "list"), ("queues",), ("guards",), ("workers",), ("doctor",), ("blobs", "list"),
]  # fmt: skip


@pytest.fixture
def lines():
    found, forms = [], (ConsoleFormatter(), JsonFormatter(), logging.Formatter("%(message)s %(__dict__)s"))

    class Keeper(logging.Handler):
        def emit(self, record):
            found.extend(form.format(record) for form in forms)

    home, keeper = logging.getLogger("holdfast"), Keeper()
    level = home.level
    home.addHandler(keeper)
    home.setLevel(logging.DEBUG)
    yield found
    home.removeHandler(keeper)
    home.setLevel(level)


def test_no_sink_has_a_secret(line, kept, monkeypatch, tmp_path, lines, notes):
    write_program(tmp_path, PROGRAM)
    monkeypatch.setenv("HOLDFAST_URL", kept)
    monkeypatch.setenv("HOLDFAST_APP", "shop:hf")
    monkeypatch.setenv("HOLDFAST_KEYS", key := new_key("k1"))
    monkeypatch.syspath_prepend(str(tmp_path))
    shop = importlib.import_module("shop")

    async def run():
        async with shop.hf as hf, hf.worker():
            await hf.flags.set("fast", True, by="ada", reason="new")
            handles = [await shop.argument.enqueue(f"{CANARY}-1"), await shop.step.enqueue(f"{CANARY}-2")]
            handles.append(await shop.sealed.enqueue())
            sent = await hf.mail.send(to=f"{CANARY}@example.org", subject=f"{CANARY} 3", text=f"{CANARY} 4", html=f"<p>{CANARY}")  # fmt: skip
            handles.extend(sent.handles)
            async with asyncio.timeout(30):
                while any([await each.status() not in {State.DEAD, State.UNKNOWN} for each in handles]):
                    await asyncio.sleep(0.02)
            return [each.id for each in handles]

    ids = asyncio.run(run())
    sinks = {f"line {number}": text for number, text in enumerate(lines)}
    sinks |= {f"note {number}": repr(each) for number, each in enumerate(notes)}
    asked = [*LISTINGS, *(("jobs", "show", each) for each in ids), *(("trace", each) for each in ids), *(("dead", "show", each) for each in ids)]  # fmt: skip
    for words in asked:
        for more in ((), ("--json",)):
            line(*words, *more)
            sinks[" ".join((*words, *more))] = line.out + line.err
    assert len(lines) >= 15
    assert "ValueError" in "".join(sinks.values())
    for secret in (CANARY, key.partition(":")[2]):
        assert {name: text for name, text in sinks.items() if secret in text} == {}
