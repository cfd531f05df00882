"""What operators see: metrics by the original's names, what says when to scale, and one line for each publication."""

from __future__ import annotations

import json
import logging
import subprocess

import httpx
import publisher_kit as kit
import pytest
from prometheus_client.parser import text_string_to_metric_families
from publisher.core import PUBLISHING
from publisher.desk import scheduling
from publisher.domain.posts import Details
from publisher.outside.deviantart import DeviantArt

from holdfast.observe import JsonFormatter, metrics
from holdfast.testing import drain
from tools.waiting import until


class Scrape:
    """`scrape("publisher_active_jobs")`; labels that are told must be so."""

    def __init__(self, text):
        self.text = text
        self._samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def __call__(self, name, **labels):
        return sum(
            each.value
            for each in self._samples
            if each.name == name and labels.items() <= each.labels.items()
        )


@pytest.fixture
def scrape(hf):
    app = metrics(hf)

    async def scraped():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return Scrape((await client.get("/metrics")).text)

    return scraped


async def are_published(hf, number):
    async with hf.transaction() as tx:
        return await tx.fetch("SELECT count(*) FROM posts WHERE state = 'published'") == [(number,)]


async def publish(artist, *titles, galleries=()):
    for title in titles:
        details = Details(title=title, mature=False, ai_made=False, agreed=True, galleries=tuple(galleries))
        await scheduling.publish_now(artist.id, await artist.draft(title, details=details))


async def test_ends_are_counted_by_the_names_of_the_original(manual_clock, hf, simulator, ada, scrape):
    """P84, P85, P86: three good ones and a bad one."""
    await ada.log_in()
    before = await scrape()
    await publish(ada, "Low sun", "High sun", "No sun")
    await publish(ada, "Nowhere", galleries=["NOT-A-FOLDER"])
    await manual_clock.run(drain(hf))
    after = await scrape()
    ended = {
        status: after("publisher_jobs_completed_total", queue="deviation", status=status)
        - before("publisher_jobs_completed_total", queue="deviation", status=status)
        for status in ("success", "failed")
    }
    assert ended == {"success": 3, "failed": 1}
    took = "publisher_job_duration_seconds"
    assert after(f"{took}_count", queue="deviation") - before(f"{took}_count", queue="deviation") >= 4
    for end in ("10", "30", "+Inf"):
        assert after(f"{took}_bucket", queue="deviation", le=end) > before(
            f"{took}_bucket", queue="deviation", le=end
        )
    assert after("publisher_active_jobs") == 0
    assert after("publisher_uptime_seconds") > before("publisher_uptime_seconds") > 0
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=after.text, capture_output=True, text=True, check=False
    )
    assert "publisher_" not in checked.stderr, checked.stderr


async def test_running_jobs_are_counted_while_they_run(hf, simulator, ada, scrape, monkeypatch):
    seen, usual = [], DeviantArt.submit

    async def looking(self, *told):
        seen.append((await scrape())("publisher_active_jobs"))
        return await usual(self, *told)

    monkeypatch.setattr(DeviantArt, "submit", looking)
    await ada.log_in()
    await publish(ada, "Low sun")
    await drain(hf)
    assert seen == [1.0]


async def test_five_figures_say_when_to_scale(hf, simulator, ada, scrape):
    """P9: backlog, oldest waiting age, mean wait, posts of an hour, and answers that ask for less."""
    await ada.log_in()
    simulator.settings.user_window = (
        0.0  # on a busy machine calls come together: the fault alone asks for less
    )
    simulator.faults.put("stash/submit", "user-429", times=1, seconds=0.3)
    await publish(ada, "Low sun", "High sun")
    waiting = await scrape()
    queue = {"queue": "deviation-publisher"}
    assert waiting("holdfast_queue_ready_jobs", **queue) + waiting("holdfast_queue_held_jobs", **queue) == 2
    assert "holdfast_queue_oldest_ready_seconds" in waiting.text
    async with hf.worker({PUBLISHING: 5}):
        await until(lambda: are_published(hf, 2), 90)
    after = await scrape()
    limited = "publisher_deviantart_answers_total"
    assert after(limited, kind="user_limit") - waiting(limited, kind="user_limit") >= 1
    waited = {"queue": "deviation-publisher", "task": "publisher.publish"}
    assert after("holdfast_job_wait_seconds_count", **waited) > waiting(
        "holdfast_job_wait_seconds_count", **waited
    )
    assert "publisher_jobs_completed_total" in after.text, "its increase in an hour is the posts of that hour"


async def test_each_publication_is_one_line(manual_clock, hf, simulator, ada, caplog):
    """P88: message, deviation, artist, duration and time; and no token in any line."""
    caplog.set_level(logging.DEBUG)
    await ada.log_in()
    secrets = list(simulator.state.grants)
    await publish(ada, "Low sun")
    await manual_clock.run(drain(hf, raise_dead=True))
    [record] = [each for each in caplog.records if each.name == "publisher.work.publishing"]
    line = json.loads(JsonFormatter().format(record))
    [entry] = simulator.ledger.find("published")
    assert (line["level"], line["artist_id"], line["deviation_id"]) == ("INFO", ada.id, entry["deviationid"])
    assert line["seconds"] >= 0
    assert line["message"].startswith("post ")
    assert line["ts"].endswith("Z")
    assert len(secrets) == 2
    assert not [secret for secret in secrets if secret in caplog.text]
    assert await kit.state_of(line["post_id"]) == "published"
