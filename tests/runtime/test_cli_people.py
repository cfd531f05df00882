"""What makes the command line kind to people: its version, what was probably meant, colours, and unknown queues."""

from __future__ import annotations

import sys

import pytest
from cli_kit import put, put_dead

from holdfast.kernel.here import version
from holdfast.runtime.cli import colour
from holdfast.runtime.cli.table import Column, table


def test_the_version(line):
    assert line("--version") == 0
    assert line.out == f"Holdfast {version()}\n"


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("deda list", "dead"),
        ("jobs lst", "list"),
        ("jobs list --state deda", "dead"),
        ("jobs list --limt 5", "--limit"),
        ("nothing-like-it", None),
    ],
)
def test_what_was_probably_meant(line, command, meant):
    assert line(*command.split()) == 2
    assert (f"Did you mean {meant}?" in line.err) == (meant is not None)
    assert len(line.err.splitlines()) == 1


def test_colours_are_for_terminals(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    for environment, wanted in (
        ({}, True),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
    ):
        assert colour.is_wanted(Terminal(), environment) is wanted
    monkeypatch.setattr(Terminal, "isatty", lambda self: False)
    assert not colour.is_wanted(Terminal(), {})
    assert colour.is_wanted(Terminal(), {"FORCE_COLOR": "1"})


def test_a_coloured_table_is_as_wide_as_a_plain_one():
    columns = (Column("state", colours=colour.STATES), Column("why", colours=colour.HELD))
    rows = [["dead", "KeyError"], ["queued", "held: time"], ["running", "dead tired"]]
    plain, coloured = (table(columns, rows, None, coloured=each) for each in (False, True))
    for sign in ("\x1b[31m", "\x1b[33m", "\x1b[0m"):
        coloured = [line.replace(sign, "") for line in coloured]
    assert [line.rstrip() for line in coloured] == plain
    assert table(columns, rows, None, coloured=True)[1].startswith("\x1b[31mdead")
    assert "\x1b" not in table(columns, rows, None, coloured=True)[3]


def test_dead_jobs_are_red_where_it_is_wanted_and_never_in_json(shop, on_store, monkeypatch):
    on_store(put_dead)
    shop("jobs", "list")
    assert "\x1b" not in shop.out
    monkeypatch.setenv("FORCE_COLOR", "1")
    shop("jobs", "list")
    assert "\x1b[31mdead" in shop.out
    shop("doctor")
    assert "\x1b[31mBAD \x1b[0m" in shop.out
    shop("jobs", "list", "--json")
    assert "\x1b" not in shop.out
    assert sys.stdout is not None


def test_a_queue_that_nobody_knows_is_paused_with_a_warning(shop, on_store):
    on_store(put, queue="letters")
    assert shop("queues", "pause", "lettres") == 0
    assert "has a queue 'lettres'" in shop.err
    assert "Did you mean letters?" in shop.err
    for known in ("letters", "mail", "default"):  # by its jobs, and by the program's tasks
        assert shop("queues", "pause", known) == 0
        assert shop.err == ""
