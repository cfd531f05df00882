"""How values are written, and what the filters put around them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from jinja2 import Environment
from markupsafe import Markup

from holdfast.errors import UsageError
from holdfast.web.pages import filters, values

NOW = datetime(2026, 11, 18, 14, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (values.number, 412_716, "412,716"),
        (values.number, -3, "-3"),
        (values.number, 2.25, "2.2"),
        (values.number, 2.0, "2"),
        (values.number, None, values.NOTHING),
        (values.short, 999, "999"),
        (values.short, 1_234_567, "1.2 M"),
        (values.short, 7500, "7.5 k"),
        (values.short, 10_000, "10 k"),
        (values.short, 999_999, "1 M"),
        (values.short, 0.25, "0.2"),
        (values.size, 0, "0 B"),
        (values.size, 999, "999 B"),
        (values.size, 940_000, "940 kB"),
        (values.size, 8_200_000, "8.2 MB"),
        (values.size, 10**19, "10000 PB"),
        (values.percent, 0, "0 %"),
        (values.percent, 0.00001, "< 0.1 %"),
        (values.percent, 0.008, "0.8 %"),
        (values.percent, 0.677, "67.7 %"),
        (values.percent, 0.9999, "> 99.9 %"),
        (values.percent, 1, "100 %"),
        (values.duration, 0.038, "38 ms"),
        (values.duration, 0.9999, "1 s"),
        (values.duration, 1.94, "1.9 s"),
        (values.duration, 9.96, "10 s"),
        (values.duration, 59.7, "1 min"),
        (values.duration, 132, "2 min 12 s"),
        (values.duration, 3 * 3600 + 39 * 60, "3 h 39 min"),
        (values.duration, 98 * 3600, "4 d 2 h"),
        (values.duration, -2, "\N{MINUS SIGN}2 s"),
        (values.distance, 2.9, "2 s"),
        (values.distance, 780, "13 min"),
        (values.distance, 13_140, "3 h 39 min"),
        (values.distance, 18 * 3600 + 100, "18 h"),
        (values.distance, 86_400, None),
    ],
)
def test_values(write, value, text):
    assert write(value) == text


def test_a_capped_count():
    assert [values.number(count, 10_000) for count in (9_999, 10_000, 50_000)] == [
        "9,999",
        "10,000+",
        "10,000+",
    ]


def test_times_in_a_zone():
    zurich = ZoneInfo("Europe/Zurich")
    write = lambda at, **more: values.clock_time(at, NOW, zurich, **more)  # noqa: E731
    assert write(NOW) == "15:05"
    assert write(NOW, seconds=True) == "15:05:12"
    assert write(NOW + timedelta(hours=9)) == "19 Nov, 00:05", "another day there, though not in UTC"
    assert write(NOW.replace(year=2025)) == "18 Nov 2025"
    assert values.moment(NOW.timestamp()) == NOW
    for wrong in (NOW.replace(tzinfo=None), "2026-01-01", True, None):
        with pytest.raises(UsageError, match="zone"):
            values.moment(wrong)


def rendered(template, **given):
    environment = Environment(autoescape=True)
    filters.add_filters(environment)
    return environment.from_string(template).render(now=NOW, zone="Asia/Tokyo", **given)


def test_the_filters():
    offset = NOW.astimezone(timezone(timedelta(hours=-3)))
    mark = '<time datetime="2026-11-18T14:05:12Z" title="2026-11-18 14:05:12 UTC">{}</time>'
    assert rendered("{{ at | time }}", at=offset) == mark.format("23:05")
    assert rendered("{{ at | time(seconds=true) }}", at=offset) == mark.format("23:05:12")
    assert rendered("{{ at | ago }}", at=offset) == mark.format("0 s ago")
    assert ">in 3 h 39 min<" in rendered("{{ at | ago }}", at=NOW.timestamp() + 13_140)
    assert ">10 Nov, 23:05<" in rendered("{{ at | ago }}", at=NOW - timedelta(days=8))
    nothing = '<span class="nothing">\N{EN DASH}</span>'
    every = "{{ n | number }}{{ n | short }}{{ n | bytes }}{{ n | percent }}{{ n | duration }}{{ n | time }}{{ n | ago }}"
    assert rendered(every, n=None) == nothing * 7
    assert rendered("{{ 0 | number }}") == '<span class="zero">0</span>'
    assert rendered("{{ 1234567 | short }}") == '<span title="1,234,567">1.2 M</span>'


@pytest.mark.parametrize(
    "address",
    ["/a", "?b=1", "#c", "a/b", "", "/a:b", "?u=http://x", "https://example.org/a?b#c", "mailto:a@b.c", "/ü"],
)
def test_links_that_lead_somewhere(address):
    assert filters.href(address) == address


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "JAVASCRIPT:x", " javascript:x", "java\tscript:x", "data:text/html,x", "vbscript:x", "//evil.example", "/\\evil.example", "\\\\evil", "https:\n//x", "a\nb", Markup("javascript:x")],
)  # fmt: skip
def test_links_that_lead_nowhere(address):
    assert filters.href(address) == "#"
