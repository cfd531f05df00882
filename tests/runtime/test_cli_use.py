"""Wrong use of the command line is one helpful line and exit code 2; and how options, variables and programs are found."""

import subprocess
import sys

import pytest
from cli_kit import run_process, write_program

from holdfast.runtime.cli.command import actor


@pytest.fixture
def line(line, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "sqlite:///holdfast.db")
    assert line("migrate") == 0
    return line


JOB = "01a1de3c-4a80-7c45-bf6d-000000000001"
WRONG = {
    "jobs show 42": "'42' is not a job's id",
    "jobs cancel nonsense": "as `holdfast jobs list` shows",
    "jobs list --limit 0": "'0' is not a whole number from 1",
    "jobs list --limit many": "'many' is not a whole number",
    "jobs list --state asleep": "queued",
    "jobs list --held asleep": "ordering",
    "jobs list --queue=": "A queue must not be empty",
    "jobs list --sate dead": "unrecognized arguments: --sate",
    "jobs list --que mail": "unrecognized arguments: --que",
    "jobs lst": "invalid choice: 'lst'",
    "jobs": "COMMAND",
    "": "COMMAND",
    "nothing": "invalid choice: 'nothing'",
    "dead replay": "their ids, or --all",
    f"dead replay {JOB} --all": "their ids, or --all",
    f"dead replay {JOB} --queue mail": "give them with --all",
    f"dead replay {JOB} --rate 0": "'0' is not a number a second",
    f"dead replay {JOB} --rate nan": "'nan' is not a number a second",
    f"dead replay {JOB} --rate fast": "'fast' is not a number a second",
    f"dead replay {JOB} --args {{": "This is not JSON",
    f"dead replay {JOB} --args []": "an object with the arguments by name",
    "dead replay --all --args {}": "give one id",
    f"dead discard {JOB}": "--reason",
    "unknown": "COMMAND",
    "unknown show 42": "'42' is not a job's id",
    f"unknown resolve {JOB}": "--done or --not-done",
    f"unknown resolve {JOB} --don": "unrecognized arguments: --don",
    "locks steal report": "--reason",
    "schedules": "--app shop.tasks:hf",
    "schedules show nightly": "--app shop.tasks:hf",
    "health --live --ready": "not allowed with",
    "health --timeout 0": "number of seconds",
    "doctor -p 0": "whole number",
    "worker": "Say whose jobs to run",
    "worker shop:hf --app other:hf": "Name one program",
    "--app other:hf worker shop:hf": "Name one program",
    "worker shop:hf --url sqlite:///a.db": "takes no --url",
    "worker --app shop:hf --url sqlite:///a.db": "takes no --url",
    "worker shop:hf --max-tasks-per-child 0": "'0' is not a whole number from 1",
    "worker shop:hf --max-tasks-per-child=-3": "'-3' is not a whole number from 1",
    "migrate --url mysql://h/d": "names no database",
    "jobs list --app shop": "'shop' names no Holdfast",
    "jobs list --app shop:": "names no Holdfast",
    "jobs list --app :hf": "names no Holdfast",
    "jobs list --app sh-op:hf": "names no Holdfast",
    "jobs list --app no.such.module:hf": "There is no module 'no'",
    "jobs list --app json:nothing": "There is no 'nothing' in the module json",
    "jobs list --app json:dumps": "of the type function, not a Holdfast",
    "jobs list --app shop:hf --url sqlite:///a.db": "not both",
}


@pytest.mark.parametrize("command", WRONG)
def test_wrong_use_is_two_and_says_how_it_is_right(line, command):
    assert line(*command.split(" ") if command else ()) == 2
    assert WRONG[command] in line.err
    assert "<" not in line.err  # plain names, and not how Python writes them
    assert len(line.err.splitlines()) == 1
    assert line.out == ""


def test_no_traceback_in_a_process_of_its_own(tmp_path):
    for command in ("jobs show 42", "jobs list --app nope:hf", "dead replay --rate 0", "jobs list --what"):
        answer = run_process(*command.split(), folder=tmp_path)
        assert answer.returncode == 2
        assert "Traceback" not in answer.stderr
        assert answer.stderr.startswith("holdfast")


def test_a_database_that_is_not_there_is_three_and_not_made(line, tmp_path):
    assert line("jobs", "list", "--url", "sqlite:///other.db") == 3
    assert "There is no SQLite file 'other.db'" in line.err
    assert not (tmp_path / "other.db").exists()
    assert line("queues", "--url", "postgresql://localhost:1/none?patience=0") == 3
    assert "cannot be reached" in line.err


@pytest.mark.parametrize("variable", ["HOLDFAST_URL", "DATABASE_URL"])
def test_a_database_of_others_in_the_environment_is_no_trouble_until_it_is_used(tmp_path, variable):
    write_program(tmp_path, "from holdfast import Holdfast\nhf = Holdfast('sqlite:///jobs.db')\n")
    foreign = {variable: "mysql://shop@db/shop"}
    for command in (
        "--help",
        "migrate --url sqlite:///jobs.db",
        "worker shop:hf --burst",
        "queues --app shop:hf",
    ):
        answer = run_process(*command.split(), folder=tmp_path, environment=foreign)
        assert answer.returncode == 0, answer.stderr
    answer = run_process("queues", folder=tmp_path, environment=foreign)
    assert answer.returncode == 2
    assert answer.stderr.startswith("holdfast: 'mysql://shop@db/shop' names no database")


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("worker", "--app", "shop:hf"), {}),
        (("--app", "shop:hf", "worker"), {}),
        (("worker",), {"HOLDFAST_APP": "shop:hf"}),
        (("worker", "-p", "1"), {"HOLDFAST_APP": "shop:hf"}),
        (("worker", "shop:hf"), {"HOLDFAST_APP": "other:hf", "HOLDFAST_URL": "sqlite:///shop.db"}),
    ],
    ids=["after", "before", "variable", "supervised", "the line wins"],
)
def test_a_worker_is_told_its_program_as_any_command(tmp_path, arguments, environment):
    write_program(tmp_path)
    answer = run_process(*arguments, "--burst", folder=tmp_path, environment=environment)
    assert answer.returncode == 0, answer.stderr
    assert "takes jobs from default" in answer.stderr


@pytest.mark.parametrize("processes", [(), ("-p", "2")], ids=["alone", "supervised"])
def test_a_worker_without_tables_leaves_with_three(empty_postgres_url, tmp_path, processes):
    write_program(tmp_path)
    environment = {"HOLDFAST_URL": empty_postgres_url}
    answer = run_process("worker", "shop:hf", *processes, folder=tmp_path, environment=environment)
    assert answer.returncode == 3
    assert "holdfast migrate" in answer.stderr
    assert "takes jobs" not in answer.stderr


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-"])
def test_a_worker_that_was_started_without_streams_leaves_in_order(tmp_path, streams):
    write_program(tmp_path)
    command = [sys.executable, "-m", "holdfast", "worker", "shop:hf", "--burst"]
    started = f'exec "$@" {streams}'
    answer = subprocess.run(
        ["/bin/sh", "-c", started, "sh", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    assert "Traceback" not in answer.stderr


def test_missing_tables_are_three(line, empty_postgres_url):
    assert line("jobs", "list", "--url", empty_postgres_url) == 3
    assert "holdfast migrate" in line.err


def test_help_names_exit_codes_and_variables(line):
    assert line("dead", "replay", "--help") == 0
    assert "[HOLDFAST_DEAD_REPLAY_RATE]" in line.out
    assert "[HOLDFAST_URL]" in line.out
    assert "Exit codes: 0 done" in line.out


# --- the environment ---


def test_a_variable_takes_an_options_place_and_the_command_line_wins(line, monkeypatch):
    monkeypatch.setenv("HOLDFAST_JOBS_LIST_LIMIT", "7")
    monkeypatch.setenv("HOLDFAST_JSON", "yes")
    assert line("jobs", "list") == 0
    assert line.out.startswith("{")
    monkeypatch.setenv("HOLDFAST_JSON", "off")
    monkeypatch.setenv("HOLDFAST_QUEUES_PAUSE_LIMIT", "no such option: nobody reads it")
    assert line("jobs", "list", "--limit", "3") == 0
    assert line.out == "No jobs.\n"
    monkeypatch.setenv("HOLDFAST_LOCKS_STEAL_REASON", "said here")
    assert line("locks", "steal", "report") == 1  # no longer wrong use


def test_a_wrong_variable_is_named_and_only_where_it_counts(line, monkeypatch):
    monkeypatch.setenv("HOLDFAST_JOBS_LIST_LIMIT", "many")
    monkeypatch.setenv("HOLDFAST_JOBS_LIST_STATE", "")
    assert line("jobs", "list") == 2
    assert "HOLDFAST_JOBS_LIST_LIMIT is 'many'" in line.err
    assert line("jobs", "list", "--limit", "x") == 2
    assert "HOLDFAST" not in line.err
    assert line("jobs", "list", "--limit", "1") == 0
    assert line("dead", "list") == 0
    monkeypatch.setenv("HOLDFAST_JOBS_LIST_STATE", "asleep")
    assert line("jobs", "list", "--limit", "1") == 2
    assert "HOLDFAST_JOBS_LIST_STATE is 'asleep'" in line.err
    monkeypatch.setenv("HOLDFAST_JSON", "perhaps")
    assert line("dead", "list") == 2
    assert "HOLDFAST_JSON is 'perhaps'" in line.err


def test_who_asks(monkeypatch):
    from argparse import Namespace

    assert actor(Namespace(actor="eve")) == "eve"
    assert "@" in actor(Namespace(actor=None))
    monkeypatch.setattr("getpass.getuser", lambda: (_ for _ in ()).throw(KeyError("uid")))
    assert actor(Namespace(actor=None)).startswith("unknown@")


# --- the program ---


def test_a_program_is_imported_from_the_current_folder(line, tmp_path):
    write_program(tmp_path)
    (tmp_path / "holdfast.db").unlink()
    assert line("migrate", "--app", "shop:hf") == 0
    assert line("schedules", "--app", "shop:hf") == 0
    assert "report.nightly" in line.out
    assert line("jobs", "list", "--app", "shop:hff") == 2
    assert "There is: shop:hf." in line.err


def test_a_url_on_the_command_line_wins_over_a_program_of_the_environment(line, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_APP", "nowhere:hf")
    assert line("jobs", "list", "--url", "sqlite:///holdfast.db") == 0
    assert line("jobs", "list") == 2
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///holdfast.db")
    assert line("jobs", "list") == 2  # both from the environment: the program is meant to read its URL there


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nothing_like_this", ["No module named 'nothing_like_this'", "broken.py line 1"]),
        ("\n1 / 0", ["ZeroDivisionError", "broken.py line 2"]),
        ("\n\ndef :", ["SyntaxError", "broken.py line 3"]),
        (
            "from holdfast import Holdfast\nhf = Holdfast()\n@hf.task(queue=7)\ndef ship(): ...\n",
            ["UsageError", "(int), in ", "broken.py line 3. Mend"],
        ),
        ("raise SystemExit(4)", ["SystemExit", "broken.py line 1"]),
    ],
)
def test_a_program_that_cannot_be_imported_says_where(line, tmp_path, text, words):
    write_program(tmp_path, text, "broken")
    assert line("jobs", "list", "--app", "broken:hf") == 2
    for word in words:
        assert word in line.err
    assert "Traceback" not in line.err


def test_ctrl_c_and_a_reader_that_has_enough(line, monkeypatch, tmp_path):
    from holdfast.runtime.cli import jobs

    def stopped(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "print_jobs", stopped)
    assert line("jobs", "list") == 130
    assert line.err == "holdfast: stopped.\n"
    program = f"{sys.executable} -m holdfast jobs list --json | true"
    piped = subprocess.run(["bash", "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert piped.stderr == ""


def test_a_full_disk_behind_the_output_is_told(tmp_path):
    program = f"{sys.executable} -m holdfast migrate --url sqlite:///{tmp_path}/new.db > /dev/full"
    told = subprocess.run(["bash", "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (told.returncode, told.stderr.count("\n")) == (3, 1)
    assert "No space left on device" in told.stderr
