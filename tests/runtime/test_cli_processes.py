"""The main paths of the command line as a person walks them: real processes, on both stores."""

import json

import pytest
from cli_kit import PROGRAM, put, put_dead, run_process, write_program

from holdfast.runtime import supervisor


@pytest.fixture
def run(kept, tmp_path):
    write_program(tmp_path)

    def act(*arguments, **more):
        environment = {"HOLDFAST_URL": kept, "HOLDFAST_APP": "shop:hf"} | more
        return run_process(*arguments, folder=tmp_path, environment=environment)

    return act


def test_a_dead_job_is_found_looked_at_and_replayed(run, on_store):
    dead = on_store(put_dead, 2)
    listed = json.loads(run("dead", "list", "--json").stdout)
    assert {job["id"] for job in listed["jobs"]} == set(dead)
    assert "ValueError: no such user" in run("dead", "show", dead[0]).stdout
    assert run("dead", "replay", "--all").stdout == "Queued again: 2 of 2.\n"
    again = run("dead", "replay", dead[0])
    assert (again.returncode, again.stdout) == (1, "")
    [entry] = json.loads(run("jobs", "show", dead[0], "--json").stdout)["audit"]
    assert "@" in entry["actor"]


def test_a_queue_is_paused_and_its_jobs_cancelled(run, on_store):
    [job] = on_store(put)
    assert run("queues", "pause", "mail").returncode == 0
    assert run("jobs", "cancel", job).returncode == 0
    table = run("queues").stdout
    assert table.splitlines()[0].split()[0] == "QUEUE"
    assert run("doctor").stdout.count("\n") > 8
    assert run("health").returncode == 0


def test_listings_print_in_any_encoding_and_width(run, on_store):
    on_store(put, task="täglich.senden")
    answer = run("jobs", "list", PYTHONIOENCODING="ascii", COLUMNS="20")
    assert answer.returncode == 0
    assert "t\\xe4glich.senden" in answer.stdout


def test_a_program_without_a_database_of_its_own_uses_the_environments(run, kept, tmp_path):
    write_program(tmp_path, PROGRAM.replace("Holdfast()", 'Holdfast("sqlite:///own.db")'), "own")
    answer = run("jobs", "list", "--app", "own:hf")
    assert answer.returncode == 3
    assert "own.db" in answer.stderr


def test_ctrl_c_says_how_far_it_came(kept, on_store, tmp_path):
    """On a terminal, as a person sees it: a bar while it works, and the truth when it is stopped."""
    import os
    import pty
    import signal
    import subprocess
    import sys

    on_store(put_dead, 30)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "holdfast", "dead", "replay", "--all", "--rate", "5", "--url", kept]
    process = subprocess.Popen(command, stderr=theirs, stdout=theirs, cwd=tmp_path)
    os.close(theirs)
    shown = ""
    try:
        while "5 of 30 replayed" not in shown:
            shown += os.read(ours, 1000).decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        while "stopped." not in shown:
            shown += os.read(ours, 1000).decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert "Queued again before it was stopped: " in shown
    assert "Traceback" not in shown


def test_sys_exit_beside_a_task_is_a_failure_of_its_run(run, on_store, tmp_path):
    """It must not end the worker: its code might be one that means something else here."""
    text = """
import asyncio, sys
from holdfast import Backoff, Holdfast

hf = Holdfast()

@hf.task(name="leaves", retry=Backoff(attempts=1))
async def leaves() -> None:
    async def leave():
        sys.exit(3)
    async with asyncio.TaskGroup() as group:
        group.create_task(leave())

@hf.task(name="stays")
async def stays() -> None:
    await asyncio.sleep(0.3)
"""
    write_program(tmp_path, text, "leaving")
    [bad] = on_store(put, task="leaves", queue="default")
    [good] = on_store(put, task="stays", queue="default")
    answer = run("worker", "leaving:hf", "--burst")
    assert answer.returncode == 0
    assert "sys.exit(3) in a task" in answer.stderr
    assert "SystemExit: 3" in run("jobs", "show", bad).stdout
    assert "succeeded" in run("jobs", "show", good).stdout


@pytest.mark.parametrize(("code", "told"), [(3, "exit code 3"), (-9, "SIGKILL"), (-40, "signal 40")])
def test_how_a_process_died(code, told):
    assert supervisor._how(code) == told
