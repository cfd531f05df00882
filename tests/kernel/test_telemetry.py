"""Notes reach whoever subscribed, and nobody who fails disturbs the others."""

from __future__ import annotations

import logging

from holdfast.kernel.telemetry import note, subscribe


def test_a_subscriber_hears_until_it_stops(notes):
    note("job.finished", job="1")
    heard: list[str] = []
    stop = subscribe(lambda name, fields: heard.append(name))
    note("job.started")
    stop()
    note("job.finished", job="2")
    assert heard == ["job.started"]
    assert notes == [("job.finished", {"job": "1"}), ("job.started", {}), ("job.finished", {"job": "2"})]


def test_a_field_may_be_called_name(notes):
    note("periodic.failed", name="tidy")
    assert notes == [("periodic.failed", {"name": "tidy"})]


def test_one_that_fails_disturbs_nobody(notes, caplog):
    def fail(name, fields):
        raise ZeroDivisionError

    stop = subscribe(fail)
    late: list[str] = []
    stop_late = subscribe(lambda name, fields: late.append(name))
    note("job.started")
    stop()
    stop_late()
    assert late == ["job.started"]
    assert "job.started" in caplog.text


def test_one_that_leaves_while_it_hears_makes_nobody_miss_the_note():
    heard: list[str] = []
    stops = []

    def once(name, fields):
        heard.append("once")
        stops[0]()

    stops.append(subscribe(once))
    stops.append(subscribe(lambda name, fields: heard.append("always")))
    note("a.b")
    note("a.b")
    stops[1]()
    assert heard == ["once", "always", "always"]


def test_a_note_that_is_not_listed_is_logged_at_debug(caplog):
    with caplog.at_level(logging.DEBUG, logger="holdfast"):
        note("job.started", job="7")
    assert caplog.messages == ["job.started {'job': '7'}"]
