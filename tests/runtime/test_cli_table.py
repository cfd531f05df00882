"""Tables fit the terminal, times are told as people say them, and a bar is only drawn where a person watches."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.cli.progress import Progress
from holdfast.runtime.cli.table import Column, Moment, breadth, clean, shortened, table
from holdfast.runtime.cli.times import ago, local, span, told

COLUMNS = [Column("id", whole=True), Column("name"), Column("number", right=True)]
ROWS = [["0123456789", "a name that is rather long", 7], ["1", None, 1_000]]


def test_without_a_terminal_cells_are_whole():
    assert table(COLUMNS, ROWS, None) == [
        "ID          NAME                        NUMBER",
        "0123456789  a name that is rather long       7",
        "1           -                             1000",
    ]


def test_long_cells_are_shortened_and_ids_never():
    assert table(COLUMNS, ROWS, 32) == [
        "ID          NAME          NUMBER",
        "0123456789  a name that…       7",
        "1           -               1000",
    ]
    narrow = table(COLUMNS, ROWS, 5)
    assert narrow[1] == "0123456789  a nam…       7"


def test_moments_take_their_short_form_before_anything_is_cut():
    row = [["1", Moment("2026-11-15T08:00:00+00:00 (3 min ago)", "3 min ago"), 7]]
    assert "T08:00:00+00:00 (3 min ago)" in table(COLUMNS, row, 60)[1]
    assert table(COLUMNS, row, 30)[1] == "1   3 min ago       7"


def test_columns_that_can_be_spared_go_before_cells_become_unreadable():
    columns = [Column("id", whole=True), Column("one", spare=True), Column("two", spare=True), Column("why")]
    rows = [["0123456789", "first", "second", "a reason that should be read"]]
    assert table(columns, rows, 60)[0].split() == ["ID", "ONE", "TWO", "WHY"]
    assert table(columns, rows, 31) == ["ID          ONE    WHY", "0123456789  first  a reason th…"]
    assert table(columns, rows, 24) == ["ID          WHY", "0123456789  a reason th…"]


@given(st.text(max_size=60), st.integers(min_value=1, max_value=40))
def test_a_cell_is_never_wider_than_asked(text, size):
    cell = shortened(clean(text), size)
    assert breadth(cell) <= size
    assert cell.isprintable() or not text.isprintable()


def test_wide_and_combining_letters_are_counted_as_they_are_shown():
    assert breadth("日本") == 4
    assert breadth("e\u0301") == 1
    assert shortened("日本語", 5) == "日本…"


def test_controls_are_shown_and_not_obeyed():
    assert clean("a\x1b[31m\nb\x07\x9b") == "a\\x1b[31m b\\x07\\x9b"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"), (0.04, "0 s"), (0.2, "0.2 s"), (1.5, "1.5 s"), (90, "90 s"), (180, "3 min"),
        (7_000, "117 min"), (7_200, "2 h"), (86_400, "24 h"), (864_000, "10 d"),
    ],
)  # fmt: skip
def test_spans(seconds, words):
    assert span(seconds) == words


def test_moments(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Europe/Zurich")
    time.tzset()
    try:
        assert local(1_794_737_939.6) == "2026-11-15T11:18:59+01:00"
        assert told(1_794_737_939.6, 1_794_738_119.6) == "2026-11-15T11:18:59+01:00 (3 min ago)"
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert ago(100, 40) == "in 60 s"
    assert told(None, 5) is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_drawn_for_people_only(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress("replayed", 200) as bar:
        bar.at(200)
    drawn = sys.stderr.getvalue()
    assert "[##############################] 200 of 200 replayed" in drawn
    assert drawn.endswith("\n")
    assert Progress("replayed", 200).line(50, 10.0).endswith("50 of 200 replayed, 30 s left")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress("replayed", 200) as bar:
        bar.at(200)
    assert sys.stderr.getvalue() == ""
