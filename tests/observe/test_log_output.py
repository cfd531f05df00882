"""Where lines go: to stderr when the program has no log of its own, and nowhere else when it has."""

from __future__ import annotations

import io
import logging
import sys
from contextlib import contextmanager

import pytest

from holdfast.observe import output
from holdfast.observe.output import set_up


@pytest.fixture
def bare(monkeypatch, capsys):
    """`with bare() as begin`: as in a new process, without the handlers of pytest."""

    @contextmanager
    def block():
        root, undo = logging.getLogger(), []
        with monkeypatch.context() as patch:
            patch.setattr(root, "handlers", [])
            patch.setattr(root, "level", logging.WARNING)
            logging.Logger.manager._clear_cache()
            try:
                yield lambda **options: undo.append(set_up(**options))
            finally:
                for each in reversed(undo):
                    each()
        logging.Logger.manager._clear_cache()

    return block


@pytest.fixture
def said(capsys):
    return lambda: capsys.readouterr().err


def test_lines_of_holdfast_and_of_the_program(bare, said):
    with bare() as begin:
        begin()
        logging.getLogger("holdfast.worker").info("of ours")
        logging.getLogger("shop").info("of theirs")
        logging.getLogger("shop").debug("chatter")
    assert [line.partition("INFO    ")[2] for line in said().splitlines()] == [
        "holdfast.worker: of ours",
        "shop: of theirs",
    ]


def test_a_program_with_a_log_keeps_it(bare, said):
    theirs = io.StringIO()
    with bare() as begin:
        logging.getLogger().addHandler(logging.StreamHandler(theirs))
        begin()
        logging.getLogger("holdfast.worker").warning("x")
    assert (theirs.getvalue(), said()) == ("x\n", "")


def test_a_format_that_is_asked_for_is_used_for_our_lines_alone(bare, said):
    theirs = io.StringIO()
    with bare() as begin:
        logging.getLogger().addHandler(logging.StreamHandler(theirs))
        begin(form="json")
        logging.getLogger("holdfast.worker").warning("ours")
        logging.getLogger("shop").warning("theirs")
    assert theirs.getvalue() == "theirs\n"
    assert '"message": "ours"' in said()


def test_a_silent_handler_is_no_log(bare, said):
    with bare() as begin:
        logging.getLogger("holdfast").addHandler(silent := logging.NullHandler())
        begin()
        logging.getLogger("holdfast").removeHandler(silent)
        logging.getLogger("holdfast.worker").info("x")
    assert "holdfast.worker: x" in said()


@pytest.mark.parametrize(
    ("options", "ours", "theirs"),
    [
        ({}, False, False),
        ({"verbose": 1}, True, False),
        ({"verbose": 2}, True, True),
        ({"level": "debug"}, True, True),
        ({"level": "error", "verbose": 1}, True, False),
    ],
)
def test_more_is_written_when_asked_for(bare, options, ours, theirs):
    with bare() as begin:
        begin(**options)
        assert logging.getLogger("holdfast.jobs").isEnabledFor(logging.DEBUG) is ours
        assert logging.getLogger("shop").isEnabledFor(logging.DEBUG) is theirs


def test_last_words_have_the_same_form(bare, said):
    with bare() as begin:
        output.last_words("it ends")
        assert said() == "holdfast: it ends\n"
        begin(form="json")
        output.last_words("it ends")
        assert '"message": "it ends"' in said()


def test_without_a_stderr_nothing_fails(bare, monkeypatch):
    with bare() as begin:
        begin()
        monkeypatch.setattr(sys, "stderr", None)
        logging.getLogger("holdfast.worker").warning("x")


def test_colours_can_be_refused(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output._is_coloured()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output._is_coloured()
