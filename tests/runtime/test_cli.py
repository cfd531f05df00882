"""The command line: what it prints and its exit codes."""

import json
import subprocess
import sys

import apsw
import pytest

from holdfast import Holdfast
from holdfast.kernel.errors import SchemaMissing
from holdfast.runtime.cli import main


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'jobs.db'}"


def test_migrate_checks_applies_and_is_done(url, capsys, tmp_path):
    assert main(["migrate", "--check", "--url", url]) == 1
    assert "to be applied: 0001_jobs" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())  # a check makes no file
    assert main(["migrate", "--url", url]) == 0
    assert "applied: 0001_jobs" in capsys.readouterr().out
    assert main(["migrate", "--check", "--url", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pending"] == []


def test_print_sql_makes_no_connection_and_is_complete(capsys):
    assert main(["migrate", "--print-sql", "--url", "sqlite:///nowhere/jobs.db"]) == 0
    connection = apsw.Connection(":memory:")
    connection.execute(capsys.readouterr().out)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert {"holdfast_job", "holdfast_lease", "holdfast_audit"} <= tables
    connection.close()


def test_printed_sql_is_json_for_programs(capsys):
    main(["migrate", "--print-sql", "--url", "sqlite:///jobs.db"])
    text = capsys.readouterr().out
    assert main(["migrate", "--print-sql", "--url", "sqlite:///jobs.db", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"database": "jobs.db", "sql": text}


def test_sql_that_was_printed_and_applied_by_hand_counts_as_migrated(url, capsys, tmp_path):
    main(["migrate", "--print-sql", "--url", url])
    connection = apsw.Connection(str(tmp_path / "jobs.db"))
    connection.execute(capsys.readouterr().out)
    connection.close()
    assert main(["migrate", "--check", "--url", url]) == 0


def test_postgres_is_migrated_by_command_only(empty_postgres_url, capsys):
    url = empty_postgres_url
    assert main(["migrate", "--check", "--url", url]) == 1
    assert main(["migrate", "--url", url]) == 0
    assert "applied: 0001_jobs" in capsys.readouterr().out
    assert main(["migrate", "--check", "--url", url]) == 0
    assert main(["migrate", "--url", url]) == 0
    assert "up to date" in capsys.readouterr().out


async def test_tables_that_are_missing_are_named_at_the_first_use(empty_postgres_url):
    async with Holdfast(empty_postgres_url) as hf:
        with pytest.raises(SchemaMissing, match=r"0001_jobs.*holdfast migrate"):
            await hf.jobs.get("01a1dd6f-fe21-76b7-9cb5-5b7301b52ee3")
        await hf.migrate()
        assert await hf.jobs.get("01a1dd6f-fe21-76b7-9cb5-5b7301b52ee3") is None


def test_wrong_use_is_two_and_a_store_in_trouble_is_three(capsys, tmp_path):
    assert main(["migrate", "--url", "mysql://h/d"]) == 2
    assert main(["migrate", "--url", f"sqlite:///{tmp_path}/nowhere/jobs.db"]) == 3
    assert "Does its folder exist" in capsys.readouterr().err


def test_newer_and_changed_tables_get_a_clear_message(url, capsys, tmp_path):
    main(["migrate", "--url", url])
    connection = apsw.Connection(str(tmp_path / "jobs.db"))
    connection.execute("UPDATE holdfast_migration SET checksum = 'x' WHERE number = 1")
    assert main(["migrate", "--check", "--url", url]) == 3
    assert "0001_jobs was applied" in capsys.readouterr().err
    connection.execute("INSERT INTO holdfast_migration VALUES (9999, '9999_later', 'x', 0)")
    assert main(["migrate", "--url", url]) == 3
    assert "Deploy the newer Holdfast" in capsys.readouterr().err
    connection.close()


def test_python_minus_m_works_and_lists_its_commands():
    answer = subprocess.run(
        [sys.executable, "-m", "holdfast", "--help"], capture_output=True, text=True, check=True
    )
    assert "migrate" in answer.stdout
