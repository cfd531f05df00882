"""What the sample app shows: invented, and always the same, so that its pictures are."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta

from markupsafe import Markup

from holdfast.web.pages import Column, Entry, Span, bars, calendar, line, spark, timeline

NOW = datetime(2026, 11, 18, 14, 5, 12, tzinfo=UTC)
QUEUES = [
    ("create_payment", 0, 51, "held", "stripe-api open", 780.0, "dead"),
    ("deviation-publisher", 3, 212, "wait", "212 future", 2.0, ""),
    ("default", 1832, 8, "held", "order", 41.0, ""),
    ("mail", 12, 4, "held", "tenant share", 3.0, ""),
    ("verify_document", 0, 0, None, None, None, ""),
    ("r2-cleanup", 0, 26, "held", "paused", 64_800.0, ""),
]
QUEUE_COLUMNS = [
    Column("Queue"),
    Column("Ready", "right"),
    Column("Held", "right"),
    Column("Why held"),
    Column("Oldest", "right", sort="oldest"),
    Column("Last hour", "right"),
]
JOB_COLUMNS = [Column("Job", sort="at"), Column("State"), Column("Wait", "right"), Column("Run", "right")]
STATES = [
    ("ok", "Done", "succeeded, published, paid"),
    ("run", "Running", "publishing, verifying, going on"),
    ("wait", "Waiting", "queued, scheduled, submitted"),
    ("held", "Held", "held, paused, limited"),
    ("late", "Late", "late, degraded, will retry"),
    ("dead", "Failed", "dead, refused, virus"),
    ("unknown", "Unknown", "nobody knows: person decides"),
    ("off", "Cancelled", "cancelled, expired, withdrawn"),
]
HISTORY = [
    ("unknown", "Waiting for you", "Two posts with this title", "14:11"),
    ("late", "No answer", "Gave up after 30 s", "14:05:42"),
    ("run", "Sent to DeviantArt", "Attempt 2 of 7", "14:05:12"),
    ("wait", "Scheduled", "By you", "2 Nov"),
]
STEPS = [
    ("Sent", "We have it. Your receipt is NU-2027-004213.", "17 Nov, 19:58"),
    ("Files checked", "All 3 files open and are free of viruses.", "17 Nov, 20:03"),
    ("Fee", "You can also pay later from the link in our mail.", "now: waiting for you"),
    ("Decision", "Two people read it.", "by 15 February 2027"),
]


def wave(count, base, swing, turn=1.0):
    return [round(base + swing * math.sin(place * turn) + swing * 0.4 * math.sin(place * 2.7)) for place in range(count)]  # fmt: skip


def minute_chart():
    points = wave(60, 7000, 450, 0.11)
    points[21:26] = [4000, 4050, 4080, 4090, 3900]
    points[26] = 8700
    labels = [(NOW - timedelta(minutes=59 - place)).strftime("%H:%M") for place in range(60)]
    failed = [20] * 47 + [1250 + 180 * (place % 3) for place in range(13)]
    marks = [(21, "deploy 2026.46"), (47, "stripe-api opened")]
    return line(
        points, labels, title="Jobs per minute in the last hour, about 7,000", second=failed, marks=marks
    )


def hour_bars():
    labels = [f"{13 + (place + 1) // 12}:{(5 + place * 4) % 60:02d}" for place in range(15)] + ["now"]
    return bars([3, 4, 3.5, 5.5, 5, 6, 8, 7.5, 6, 7, 9, 8, 5.5, 6, 7.5, 9.6], labels, title="Jobs a minute")


def sparks():
    return {
        name: spark(wave(30, 10, 4 + place, 0.7 + place * 0.3), title=f"{name}, last hour", state=state)
        for place, (name, *_, state) in enumerate(QUEUES)
    }


def attempts():
    spans = [
        Span("Held: limiter da-user", 0, 13, "held", "13 s, uncharged"),
        Span("Attempt 1", 13, 19, "dead", "ConnectTimeout"),
        Span("load", 13, 13.042, "ok", "42 ms", depth=1),
        Span("submit", 14, 19, "dead", "no connection in 5 s", depth=1),
        Span("Attempt 2", 30, 52, "late", "worker w-3 died; rescued after 34 s"),
        Span("submit", 31, 52, "late", "cut", depth=1),
        Span("Attempt 3", 86, 131, "unknown", "parked: unknown"),
        Span("submit", 87, 98.4, "ok", "11.4 s, item 8041775523", depth=1),
        Span("publish", 98.4, 128.4, "unknown", "sent, no answer in 30 s", depth=1, is_open=True),
    ]
    return timeline(spans, title="Attempts, steps and effects of this job")


def november():
    def at(day, hour, minute=0, **more):
        return Entry(datetime(2026, 11, day, hour, minute, tzinfo=UTC), href=f"/posts/{day}-{hour}", **more)

    entries = [
        at(2, 9, title="Moth study", state="ok", word="Published"),
        at(2, 18, 1, title="Winter fern", state="ok", word="Published"),
        at(11, 9, title="Tidal room", state="dead", word="Failed"),
        at(18, 14, 5, title="Salt lantern", state="unknown", word="Unknown"),
        at(18, 14, 10, title="The long ferry to the far north", state="late", word="Late"),
        at(18, 18, title="Night tram", state="wait"),
        at(19, 9, title="Moth study", state="wait"),
        at(26, 9, title="Bramble", state="held", word="Held"),
        at(26, 18, title="Зимний папоротник", state="held", word="Held"),
    ]
    return calendar(
        date(2026, 11, 1), entries, today=NOW.date(), title="November 2026", day=lambda day: f"?day={day}"
    )


def drawn(text):
    """Every drawing, with one text in every place that takes one."""
    entry = Entry(NOW, text, text, text, text, text)
    return Markup("").join((
        line([1, None, 2], [text] * 3, title=text, second=[0, 1, 0], marks=[(0, text), (2, text)]),
        bars([1, 2], [text] * 2, title=text),
        spark([1, 2], title=text, state=text),
        timeline([Span(text, 0, 1, text, text), Span(text, 0, 1, text, text, depth=1)], title=text),
        calendar(NOW.date(), [entry] * 3, today=NOW.date(), title=text, day=lambda day: text),
    ))  # fmt: skip
