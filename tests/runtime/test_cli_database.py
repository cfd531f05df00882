"""Which database a command is about: none is made by accident, and an advice is a whole command."""

from __future__ import annotations

import pytest
from cli_kit import write_program

COMMANDS = (
    "migrate", "migrate --check", "migrate --print-sql", "jobs list", "dead list", "unknown list", "queues", "workers",
    "sagas list", "locks", "guards", "outbox list", "views", "cache", "doctor", "health",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_database_the_three_ways_are_named_and_nothing_is_made(line, command, tmp_path):
    assert line(*command.split()) == 2
    for way in ("--url postgresql://", "--app shop.tasks:hf", "HOLDFAST_URL or DATABASE_URL"):
        assert way in line.err
    assert line.out == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["HOLDFAST_URL", "DATABASE_URL"])
def test_an_empty_variable_is_named(line, name, monkeypatch, tmp_path):
    monkeypatch.setenv(name, "")
    assert line("migrate") == 2
    assert f"{name} is empty" in line.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["jobs list", "workers", "doctor", "health", "migrate --check"])
def test_who_only_looks_makes_no_file(line, command, tmp_path):
    code = line(*command.split(), "--url", "sqlite:///none.db")
    assert code in (1, 3)
    assert "none.db" in line.out + line.err
    assert not list(tmp_path.iterdir())


def test_the_advice_to_migrate_is_a_whole_command(line, empty_postgres_url, tmp_path, monkeypatch):
    url = empty_postgres_url
    before, at, after = url.partition("@")
    secret = f"{before}:geheim@{after}" if at and ":" not in before.partition("://")[2] else url
    assert line("jobs", "list", "--url", secret) == 3
    assert "`holdfast migrate --url postgresql://" in line.err
    assert "geheim" not in line.err
    assert line("doctor", "--url", secret) == 1
    assert "Run: holdfast migrate --url postgresql://" in line.out
    write_program(tmp_path)
    monkeypatch.setenv("HOLDFAST_URL", url)
    assert line("jobs", "list", "--app", "shop:hf") == 3
    assert "`holdfast migrate --app shop:hf`" in line.err


def test_a_port_that_is_none_is_wrong_use(line):
    assert line("jobs", "list", "--url", "postgresql://ada:geheim@localhost:notaport/x") == 2
    assert "'notaport'" in line.err
    assert "geheim" not in line.err
