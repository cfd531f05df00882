"""Drawings: sound as XML, told to screen readers, and without a style attribute."""

from __future__ import annotations

from datetime import UTC, date, datetime
from xml.etree import ElementTree as ET

import pytest

from holdfast.errors import UsageError
from holdfast.web.pages import Entry, Span, bars, calendar, line, spark, timeline
from holdfast.web.pages.draw.scale import scale_of


def parsed(drawing):
    tree = ET.fromstring(str(drawing))
    for element in tree.iter():
        assert not {name for name in element.attrib if name == "style" or name.startswith("on")}
    return tree


def numbers_of(tree):
    return [[cell.text for cell in row] for row in tree.iter("tr")]


def test_the_scale_is_round_and_has_room():
    for highest in (0.0004, 0.3, 1, 7, 12, 99, 100, 7321, 10_000, 123_456_789):
        scale = scale_of(highest)
        assert scale.top >= highest * 0.999
        assert scale.top <= highest * 2
        assert 2 <= len(scale.ticks) <= 6
    assert scale_of(0).top == 1


def test_a_line_has_its_points_at_their_places():
    drawn = parsed(
        line([0, 5, 10], ["a", "b", "c"], title="Jobs a minute", second=[0, 0, 5], marks=[(1, "deploy")])
    )
    assert drawn.find(".//svg[@role='img']/title").text == "Jobs a minute"
    assert drawn.find(".//polyline").get("points") == "0.00,100.00 50.00,50.00 100.00,0.00"
    assert numbers_of(drawn) == [
        [None, "Jobs a minute", "second"],
        ["a", "0", "0"],
        ["b", "5", "0"],
        ["c", "10", "5"],
    ]
    [bar] = list(drawn.iter("rect"))
    assert (bar.get("height"), bar.get("y")) == ("50.00%", "50.00%")
    assert "deploy" in "".join(drawn.itertext())


def test_a_gap_stays_a_gap():
    drawn = parsed(line([1, None, None, 4, 4], title="x"))
    assert len(drawn.findall(".//polyline")) == 2
    assert numbers_of(drawn)[2] == ["2", "\N{EN DASH}"]
    assert parsed(line([], title="x")).findall(".//polyline") == []
    assert parsed(line([None], title="x")).findall(".//circle") == []
    assert len(parsed(line([3], title="x")).findall(".//circle")) == 1


def test_bars_and_sparks():
    drawn = parsed(bars([0, 5, 10], ["13:05", "13:10", "now"], title="x"))
    assert [each.get("height") for each in drawn.iter("rect")] == ["0.00%", "50.00%", "100.00%"]
    assert [each.get("class") for each in drawn.iter("rect")] == ["bar", "bar", "bar last"]
    for points in ([], [0], [0, 0], [1, 2, 3]):
        assert parsed(spark(points, title="Last hour")).find("title").text == "Last hour"
    assert "off" in parsed(spark([0, 0], title="x")).get("class")
    assert parsed(spark([1], title="x", state="dead")).get("class") == "spark dead"


def test_a_timeline_can_be_read_as_a_list():
    spans = [
        Span("Attempt 1", 100, 106, "dead", "timeout"),
        Span("publish", 101, 106, "unknown", "sent", 1, True),
    ]
    drawn = parsed(timeline(spans, title="Attempts"))
    heard = ["".join(each.itertext()) for each in drawn.iter("li")]
    assert heard == ["Attempt 1, 6 s, timeout", "publish, no end, sent"]
    assert drawn.find("ol").get("aria-label") == "Attempts"
    first, second = drawn.iter("rect")
    assert (first.get("x"), first.get("height"), second.get("height")) == ("0%", "12", "8")
    assert "open" in second.get("class")
    assert timeline([], title="x") == ""
    assert len(list(parsed(timeline([Span("a", 5, 5)], title="x")).iter("rect"))) == 1
    for span in (Span("long", 0, 400 * 86_400), Span("short", 0, 0.0001)):
        assert 2 <= len(list(parsed(timeline([span], title="x")).iter("g"))) <= 9


def test_a_month_has_its_days_and_says_what_does_not_fit():
    def at(day, hour, title):
        return Entry(datetime(2026, 11, day, hour, tzinfo=UTC), title, f"/{day}", "late", "Late")

    entries = [at(18, 18, "third"), at(18, 9, "first"), at(18, 12, "second"), at(1, 9, "other")]
    drawn = parsed(calendar(date(2026, 11, 1), entries, today=date(2026, 11, 18), title="November", day=lambda day: f"?day={day}"))  # fmt: skip
    cells = {each.get("data-day"): each for each in drawn.iter("td")}
    assert len(cells) == 42
    assert (min(cells), max(cells)) == ("2026-10-26", "2026-12-06")
    words = ["".join(each.itertext()) for each in cells["2026-11-18"].iter("a")]
    assert words == ["today, 1 more", "09:00firstLate", "12:00secondLate"]
    assert cells["2026-11-18"].find(".//a").get("href") == "?day=2026-11-18"
    assert cells["2026-11-18"].get("class") == "today"
    assert drawn.find("caption").text == "November"


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda: line([1, 2], ["a"], title="x"), "2 points and 1 labels"),
        (lambda: line([float("nan")], title="x"), "cannot be drawn"),
        (lambda: bars([1], ["a", "b"], title="x"), "1 counts and 2 labels"),
        (lambda: bars([float("inf")], title="x"), "cannot be drawn"),
        (lambda: timeline([Span("a", 5, 4)], title="x"), "begins at 5"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, words):
    with pytest.raises(UsageError, match=words):
        draw()
