"""Notes in the log: levels, fields on the record, nothing that forges a line or tells a secret, and bounded floods."""

from __future__ import annotations

import asyncio
import logging

import pytest

from holdfast.kernel import floods, logged
from holdfast.kernel.context import within
from holdfast.kernel.failure import Failure
from holdfast.kernel.masking import hide, secrets_here
from holdfast.kernel.notes import NOTES
from holdfast.kernel.telemetry import note, unlogged
from holdfast.kernel.world import inhabit
from holdfast.testing.clock import ManualClock

FAILED = {"job": "j1", "task": "mail.send", "queue": "mail", "attempt": 1, "attempts": 3, "after": 5.123}


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(logged, "_floods", floods.Floods(logged._tell_flood))


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, logger="holdfast")
    return caplog


def test_a_note_is_a_sentence_at_its_level_with_its_fields(lines):
    with within(correlation_id="story"):
        note("job.failed", **FAILED, error="KeyError: 'x'\n  /srv/shop/tasks.py:14 in send")
    [record] = lines.records
    assert (record.name, record.levelname) == ("holdfast.jobs", "WARNING")
    assert record.getMessage() == (
        "job j1 of mail.send failed, attempt 1 of 3; it runs again in 5.1 s: KeyError: 'x' (tasks.py:14 in send)"
    )
    assert (record.event, record.job_id, record.task, record.queue) == (
        "job.failed", "j1", "mail.send", "mail",
    )  # fmt: skip
    assert (record.attempt, record.after, record.correlation_id) == (1, 5.123, "story")


def test_fields_that_logging_has_itself_are_called_otherwise(lines):
    note("thread.failed", thread="writer", error="x")
    note("periodic.failed", name="members", error="x")
    note("saga.module_broken", module="shop", error="x")
    assert [record.thread_name for record in lines.records[:1]] == ["writer"]
    assert lines.records[1].called == "members"
    assert lines.records[2].module_name == "shop"


@pytest.mark.parametrize("name", NOTES)
def test_every_note_becomes_a_line(lines, name):
    """One whose field has a name of logging's own would never be seen: telling does not fail."""
    lines.set_level(logging.DEBUG, logger="holdfast")
    lines.clear()
    entry = NOTES[name]
    note(name, **dict.fromkeys((*entry.fields, *entry.optional), "x"))
    assert [record.event for record in lines.records] == [name]


def test_a_part_with_nothing_to_say_is_left_out_and_numbers_are_short(lines):
    event = {"event": "e1", "type": "order.placed", "error": "x"}
    note("relay.event_failed", **event, key="")
    note("relay.event_failed", **event, key="order:1")
    note("loop.blocked", task="t", seconds=1.19871682126427)
    assert lines.messages[:2] == [
        "event e1 (order.placed) could not be published yet: x",
        "event e1 (order.placed, key: order:1) could not be published yet: x",
    ]
    assert "for 1.2 s;" in lines.messages[2]


def test_a_line_that_lacks_a_field_is_written_all_the_same(lines):
    note("job.died", job="j1")
    assert lines.messages == ["job.died {'job': 'j1'}"]


@pytest.mark.parametrize(
    "broken", ["a\nb", "a\r\nb", "a\x1b[2Jb", "a\u2028b", "a\x85b", "a\x00b", "a\u202eb"]
)
def test_no_value_can_forge_a_line(lines, broken):
    note("job.failed", **{**FAILED, "task": broken, "job": broken}, error=f"{broken}: {broken}")
    [record] = lines.records
    for text in (record.getMessage(), record.task, record.job_id, record.error):
        assert text.isprintable()
        assert len(text.splitlines()) == 1


@pytest.fixture
def secret():
    mark = secrets_here.set(("tops3cret",))
    yield "tops3cret"
    secrets_here.reset(mark)


def test_the_secrets_of_the_job_that_runs_are_hidden(lines, secret):
    note("guard.gave_up", guard="pay", reason="no time is left", error="HTTPError('tops3cret')")
    note("job.died", Failure(ValueError("tops3cret")), job="j", task="t", error="x")
    for record in lines.records:
        assert "tops3cret" not in logging.Formatter("%(message)s %(error)s").format(record)
        assert not record.exc_info


def test_a_secret_of_a_few_letters_hides_no_part_of_an_id():
    """Such as the subject "1" of a mail: the line must still say which job it is."""
    assert hide("job 01a1f42b of 1: '1' \"a1\" x=1", ["1"]) == "job 01a1f42b of ***: '***' \"a1\" x=***"
    assert hide("job 01a1f: a1b", ["a", "a1b"]) == "job 01a1f: ***"
    assert hide("in xtops3crety", ["tops3cret"]) == "in x***y"


def raised(text):
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


def test_a_death_tells_where_it_happened(lines):
    note("job.failed", Failure(raised("x")), **FAILED, error="x")
    note("job.died", Failure(raised("x\nFORGED")), job="j", task="t", error="x")
    failed, died = lines.records
    assert failed.exc_text is None
    told = logging.Formatter("%(message)s").format(died)
    assert "in raised" in told
    assert not any(line.startswith("FORGED") for line in told.splitlines())
    assert died.exc_info[0] is ValueError


def test_a_failed_attempt_tells_where_when_everything_is_wanted(lines):
    lines.set_level(logging.DEBUG, logger="holdfast")
    note("job.failed", Failure(raised("x"), ["tops3cret"]), **FAILED, error="x")
    assert "in raised" in lines.records[0].exc_text
    assert lines.records[0].exc_info is None, "its message may have the secret"


def test_who_tells_does_not_fail_by_it(lines):
    class Strange(dict):
        def items(self):
            raise ZeroDivisionError

    note("worker.started", worker="w", queues=Strange(a=1))
    logging.getLogger("holdfast.worker").addFilter(fail := lambda record: 1 // 0)
    note("worker.stopped", worker="w")
    logging.getLogger("holdfast.worker").removeFilter(fail)


def test_nothing_is_logged_in_a_simulation(lines):
    with unlogged():
        note("job.died", job="j", task="t", error="x")
    assert lines.records == []


def test_a_flood_is_bounded_and_counted(lines):
    with inhabit(ManualClock()) as clock:
        for number in range(250):
            note("job.failed", **{**FAILED, "job": f"j{number}"}, error="x")
        note("job.failed", **{**FAILED, "task": "other"}, error="x")
        assert len(lines.records) == floods.LINES + 1
        clock.advance(10)
        note("worker.stopped", worker="w")
        assert (
            "240 more lines like this of mail.send in 10 s were left out (job.failed); the last: job j249"
            in (lines.messages[-2])
        )
        assert (lines.records[-2].left_out, lines.records[-2].job_id) == (240, "j249")
        note("job.failed", **FAILED, error="x")
        assert "attempt 1 of 3" in lines.messages[-1]


def test_the_dead_are_bounded_in_the_same_way(lines):
    for number in range(10_000):
        note("job.died", job=f"j{number}", task="t", error="x")
    logged.flush()
    assert len(lines.records) == floods.LINES + 1
    assert lines.records[-1].left_out == 9_990
    logged.flush()
    assert len(lines.records) == floods.LINES + 1


async def test_the_end_of_a_flood_is_told_without_another_note(lines, monkeypatch):
    monkeypatch.setattr(floods, "SECONDS", 0.05)
    for _ in range(12):
        note("job.died", job="j", task="t", error="x")
    while not hasattr(lines.records[-1], "left_out"):
        await asyncio.sleep(0.01)
    assert lines.records[-1].left_out == 2


def test_chatter_is_not_bounded(lines):
    lines.set_level(logging.DEBUG, logger="holdfast")
    for _ in range(50):
        note("job.began", job="j", task="t", queue="q", attempt=1)
    assert len(lines.records) == 50


def test_the_number_of_kinds_is_bounded():
    for number in range(3_000):
        note("job.died", job="j", task=f"t{number}", error="x")
    assert len(logged._floods._windows) <= 1_000
