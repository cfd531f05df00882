"""A supervised process runs a worker, also when the number of processes stands in the environment it inherits."""

import pytest
from cli_kit import write_program

from holdfast.runtime.cli import worker as command

WORKER, SUPERVISOR = 10, 20  # as exit codes


@pytest.mark.parametrize(("supervised", "starts"), [("1", WORKER), ("", SUPERVISOR)])
def test_a_child_never_supervises(line, tmp_path, monkeypatch, supervised, starts):
    async def worker(*given):
        return WORKER

    async def supervisor(*given):
        return SUPERVISOR

    write_program(tmp_path)
    monkeypatch.setenv("HOLDFAST_WORKER_PROCESSES", "2")
    monkeypatch.setenv("HOLDFAST_SUPERVISED", supervised)
    monkeypatch.setenv("HOLDFAST_WORKER_NAME", "hidden options have no variable")
    monkeypatch.setattr(command, "run_worker", worker)
    monkeypatch.setattr(command, "_supervise", supervisor)
    monkeypatch.setattr(command, "die_with_parent", lambda: None)
    assert line("worker", "shop:hf") == starts
