"""The set-up takes uv when it works, and pip when it does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import set_up


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """What would be run, and a folder that stands for .venv. Commands that begin with a failing word fail."""
    run: list[str] = []
    failing: set[str] = set()

    def record(*command: str) -> None:
        run.append(" ".join(command))
        if command[0] in failing:
            raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(set_up, "run", record)
    monkeypatch.setattr(set_up, "VENV", tmp_path)
    monkeypatch.setattr(set_up, "usable", lambda: False)
    return run, failing, tmp_path


def test_uv_installs_what_is_locked_and_then_holdfast(commands, monkeypatch):
    run, _, venv = commands
    monkeypatch.setattr(set_up, "uv_works", lambda: True)
    assert set_up.main() == 0
    assert [command.split(" --")[0] for command in run] == ["uv venv", "uv pip install", "uv pip install"]
    assert "--no-python-downloads" in run[0]
    assert "--require-hashes" in run[1]
    assert "--no-deps --no-build-isolation --editable" in run[2]
    assert (venv / ".ready").exists()


def test_without_uv_pip_does_it(commands, monkeypatch):
    run, _, _ = commands
    monkeypatch.setattr(set_up, "uv_works", lambda: False)
    assert set_up.main() == 0
    assert all("uv" not in Path(command.split()[0]).name for command in run)
    assert "--require-hashes" in run[1]


def test_when_uv_fails_pip_is_tried(commands, monkeypatch):
    run, failing, venv = commands
    failing.add("uv")
    monkeypatch.setattr(set_up, "uv_works", lambda: True)
    assert set_up.main() == 0
    assert len(run) == 4
    assert (venv / ".ready").exists()


def test_when_nothing_works_there_is_no_stamp(commands, monkeypatch, capsys):
    _, failing, venv = commands
    failing.update(["uv", set_up.sys.executable])
    monkeypatch.setattr(set_up, "uv_works", lambda: True)
    assert set_up.main() == 1
    assert not (venv / ".ready").exists()
    assert "The set-up failed" in capsys.readouterr().err


def test_a_shim_that_knows_no_uv_is_not_uv(monkeypatch, tmp_path):
    shim = tmp_path / "uv"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert not set_up.uv_works()
    shim.write_text("#!/bin/sh\nexit 0\n")
    assert set_up.uv_works()
