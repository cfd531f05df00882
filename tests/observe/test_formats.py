"""Lines for people and for programs: whole, on their own, with the job that they speak of, and without its secrets."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from holdfast.kernel.context import within
from holdfast.kernel.masking import secrets_here
from holdfast.observe import ConsoleFormatter, JobFields, JsonFormatter


def record(text, *args, name="shop", level=logging.INFO, **extra):
    return logging.getLogger(name).makeRecord(
        name, level, "f", 1, text, args, extra.pop("exc_info", None), extra=extra
    )


def as_json(line):
    text = JsonFormatter().format(line)
    assert len(text.splitlines()) == 1
    return json.loads(text)


def test_a_line_on_the_console():
    text = ConsoleFormatter().format(record("hello %s", "ada"))
    assert text.partition(" INFO    ")[2] == "shop: hello ada"
    assert len(text.partition(" INFO")[0]) == len("2026-11-18 10:15:02.123")


def test_a_line_of_a_job_names_it():
    with within(job_id="j1", correlation_id="c1"):
        assert ConsoleFormatter().format(record("hello")).endswith("shop: hello (job j1)")
        found = as_json(record("hello"))
        assert (found["job_id"], found["correlation_id"]) == ("j1", "c1")
    assert "job_id" not in as_json(record("hello"))


def test_ids_for_handlers_of_ones_own():
    line = record("hello")
    with within(job_id="j1"):
        assert JobFields().filter(line)
    assert logging.Formatter("%(job_id)s|%(correlation_id)s|%(message)s").format(line) == "j1||hello"


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\u2028b", "a\x85b", "a\x1b[2Jb", "a\x0bb"])
def test_only_one_line_begins_at_the_left(text):
    lines = ConsoleFormatter().format(record("%s", text)).splitlines()
    assert all(line.startswith("    ") for line in lines[1:])
    assert all(line.isprintable() for line in lines)
    assert as_json(record("%s", text))["message"] == text


def test_fields_are_values():
    found = as_json(record("x", number=1, table={"a": [1]}, thing=object, nan=float("nan")))
    assert (found["number"], found["table"], found["nan"]) == (1, {"a": [1]}, "nan")
    assert found["ts"].endswith("Z")
    assert (found["level"], found["logger"]) == ("INFO", "shop")


def test_an_exception_is_indented_or_a_field():
    try:
        raise ValueError("a\n2026-01-01 FORGED")
    except ValueError:
        line = record("it failed", exc_info=sys.exc_info())
    lines = ConsoleFormatter().format(line).splitlines()
    assert all(each.startswith("    ") for each in lines[1:])
    assert "Traceback" in lines[1]
    assert "FORGED" in as_json(line)["traceback"]


@pytest.fixture
def secret():
    mark = secrets_here.set(("tops3cret",))
    yield "tops3cret"
    secrets_here.reset(mark)


def test_secrets_are_hidden_in_lines_of_the_program_too(secret):
    line = record("sent %s", "tops3cret", token="tops3cret")
    assert "tops3cret" not in ConsoleFormatter().format(line) + JsonFormatter().format(line)


def test_a_line_with_wrong_arguments_is_seen():
    assert "%d of" in ConsoleFormatter().format(record("%d of", "x"))


def test_colours_are_for_terminals():
    assert "\x1b[31m" in ConsoleFormatter(colour=True).format(record("x", level=logging.ERROR))
    assert "\x1b" not in ConsoleFormatter().format(record("x", level=logging.ERROR))
