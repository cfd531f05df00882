"""A supervised process runs a worker, also when the number of processes stands in the environment it inherits."""

import pytest
from cli_kit import write_program

from holdfast.runtime.cli import worker as command
from holdfast.runtime.supervisor import SUPERVISOR as PARENT

WORKER, SUPERVISOR = 10, 20  # as exit codes


@pytest.mark.parametrize(("supervised", "starts"), [("1", WORKER), (None, SUPERVISOR)])
def test_a_child_never_supervises(line, tmp_path, monkeypatch, supervised, starts):
    async def worker(*given):
        return WORKER

    async def supervisor(*given):
        return SUPERVISOR

    write_program(tmp_path)
    monkeypatch.setenv("HOLDFAST_WORKER_PROCESSES", "2")
    if supervised is not None:
        monkeypatch.setenv(PARENT, supervised)
    monkeypatch.setenv("HOLDFAST_WORKER_NAME", "hidden options have no variable")
    monkeypatch.setattr(command, "run_worker", worker)
    monkeypatch.setattr(command, "_supervise", supervisor)
    monkeypatch.setattr(command, "die_with_parent", lambda _: None)
    assert line("worker", "shop:hf") == starts
