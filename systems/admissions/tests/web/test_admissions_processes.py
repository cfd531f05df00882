"""Real processes: two APIs that share everything, one of them killed in the middle of a submission; probes, signals, settings."""

from __future__ import annotations

import asyncio
import re
import threading
import time

import admissions_kit as kit
import httpx
import pytest
from admissions.core import hf
from admissions_processes import World
from admissions_visitors import PASSWORD, TYPED, give_password

from holdfast.testing import fresh


@pytest.fixture
def world(stripe_simulator, any_url, tmp_path):
    return World(tmp_path, any_url)


@pytest.fixture
def known(world):
    """Somebody who can log in, and a term."""

    async def made():
        async with fresh(hf, world.environment["DATABASE_URL"]):
            who = await kit.person("anh@example.org")
            await give_password(who)
            return await kit.term()

    return asyncio.run(made())


class Anh:
    """Her requests go to whichever process is named."""

    def __init__(self):
        self.http = httpx.Client(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.close()

    def log_in(self, url):
        answer = self.http.post(f"{url}/api/login", json={"mail": "anh@example.org", "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        self.http.headers["x-csrf-token"] = answer.json()["csrf"]
        return self

    def submit(self, url, term, key="a-1", content=kit.PDF):
        return self.http.post(
            f"{url}/applications", data={"termId": term, **TYPED}, files={"other": ("a.pdf", content, "application/pdf")},
            headers={"idempotency-key": key},
        )  # fmt: skip


def test_one_is_killed_in_a_submission_and_the_other_takes_over(world, known):
    """Wherever it was: whoever asks the other one again with the key gets one application."""
    with world.start("api") as one, world.start("api") as two, Anh() as anh:
        anh.log_in(one.ready().url)
        two.ready()
        answers = []

        def asks():
            try:
                answers.append(anh.submit(one.url, known, content=kit.PDF + b" " * 4_000_000))
            except httpx.TransportError:
                answers.append(None)

        thread = threading.Thread(target=asks)
        thread.start()
        time.sleep(0.05)
        one.kill()
        thread.join(60)
        first = anh.submit(two.url, known, content=kit.PDF + b" " * 4_000_000)
        again = anh.submit(two.url, known, content=kit.PDF + b" " * 4_000_000)
        assert (first.status_code, again.content) == (202, first.content), first.text
        assert again.headers["idempotent-replayed"] == "true"
        assert len(anh.http.get(f"{two.url}/api/applications").json()) == 1
        two.signal()
        assert two.ended() == 0


def test_all_starts_both_takes_it_to_the_fee_and_ends_both(world, known):
    with world.start("all") as both, Anh() as anh:
        both.ready()
        both.until(f"{both.probe_url}/ready")
        health = httpx.get(f"{both.probe_url}/health").json()
        assert (health["status"], health["service"]) == ("healthy", "admissions")
        ready = httpx.get(f"{both.probe_url}/ready").json()
        assert (ready["status"], ready["redis"]) == ("ready", {"connected": False, "configured": False})
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", ready["timestamp"])
        assert httpx.get(f"{both.url}/metrics").status_code == 404, "numbers are not for the public"
        anh.log_in(both.url)
        place = anh.submit(both.url, known).json()["statusUrl"]
        end = time.monotonic() + 60
        while anh.http.get(f"{both.url}{place}").json()["status"] != "awaiting_payment":
            assert time.monotonic() < end, both.log.read_text()
            time.sleep(0.1)
        both.signal()
        assert both.ended() == 0


def test_wrong_settings_stop_the_start_by_name(stripe_simulator, tmp_path):
    world = World(tmp_path, f"sqlite:///{tmp_path / 'admissions.db'}")
    for command, name, value, says in (
        ("api", "ADMISSIONS_PORT", "many", "'many' is no whole number"),
        ("worker", "ADMISSIONS_PAY_AT_ONCE", "0", "0 is too small"),
        ("all", "ADMISSIONS_ZONE", "Mars/Olympus", "is no zone"),
        ("settings", "ADMISSIONS_ENV", "production", "ADMISSIONS_PUBLIC_URL"),
    ):
        ended = world.run(command, **{name: value})
        assert ended.returncode == 2, (name, command, ended.stderr)
        assert says in ended.stderr
        assert "Traceback" not in ended.stderr
    shown = world.run(
        "settings", STRIPE_API_KEY="sk_test_secret", DATABASE_URL="postgresql://a:pass-word@h/db"
    )
    assert shown.returncode == 0, shown.stderr
    assert "sk_test_secret" not in shown.stdout
    assert "pass-word" not in shown.stdout
