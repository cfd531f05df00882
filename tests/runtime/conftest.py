"""Fixtures for the command line: a migrated database of either kind, a program beside it, and nothing from outside."""

import asyncio
import os
import sys

import pytest
from cli_kit import Kept, Line, write_program


@pytest.fixture
def line(capsys, monkeypatch, tmp_path):
    """The command line in an empty folder, with no variables of ours set."""
    for name in list(os.environ):
        if name.startswith(("HOLDFAST", "DATABASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield Line(capsys)
    for name in ("shop", "broken", "depends"):
        sys.modules.pop(name, None)


@pytest.fixture(params=["sqlite", "postgres"])
def kept(request, tmp_path):
    """The URL of a database with all tables, on each store in turn."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    asyncio.run(_make(url))
    return url


async def _make(url):
    async with Kept(url):
        pass


@pytest.fixture
def shop(line, kept, monkeypatch, tmp_path):
    """The command line of a program that uses that database."""
    write_program(tmp_path)
    monkeypatch.setenv("HOLDFAST_URL", kept)
    monkeypatch.setenv("HOLDFAST_APP", "shop:hf")
    monkeypatch.setenv("HOLDFAST_ACTOR", "ada@shop")
    return line


@pytest.fixture
def on_store(kept):
    """Run something on the database: `on_store(put_dead, 3)`."""

    def act(verb, *given, **named):
        async def inside():
            async with Kept(kept) as store:
                return await verb(store, *given, **named)

        return asyncio.run(inside())

    return act
