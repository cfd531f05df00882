"""What the processes of the command line write: lines for people or for programs, once each, or as the program wants them."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from cli_kit import run_process, write_program

PROGRAM = '''"""A shop whose jobs fail."""

import asyncio
import logging

from holdfast import Backoff, Holdfast

{setup}
hf = Holdfast("sqlite:///shop.db")


@hf.task(name="mail.send", retry=Backoff(attempts=2, first=0.01, ceiling=0.01))
async def send(to: str) -> None:
    logging.getLogger("shop").info("mail to %s", to)
    raise ConnectionError("no server")


async def main() -> None:
    async with hf:
        await send.enqueue("ada")


if __name__ == "__main__":
    asyncio.run(main())
'''


@pytest.fixture
def worker(tmp_path):
    """Run a worker until the one job is dead; returns the lines that it wrote."""

    def run(*options, setup="", environment=None):
        write_program(tmp_path, PROGRAM.format(setup=setup))
        subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, check=True)
        lines = []
        for _ in range(2):  # perhaps the first one leaves before the second attempt
            done = run_process(
                "worker", "shop:hf", "--burst", *options, folder=tmp_path, environment=environment
            )
            assert done.returncode == 0, done.stderr
            lines += done.stderr.splitlines()
        return lines

    return run


LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (\w+) +([\w.]+): (.*)")


def test_lines_for_people(worker):
    lines = worker()
    found = [LINE.fullmatch(line) for line in lines if not line.startswith("    ")]
    assert all(found), lines
    told = [(line[1], line[2]) for line in found]
    assert told[0] == told[-1] == ("INFO", "holdfast.worker")
    shop = ("INFO", "shop")
    assert [each for each in told if each[1] != "holdfast.worker"] == [
        shop, ("WARNING", "holdfast.jobs"), shop, ("ERROR", "holdfast.jobs"),
    ]  # fmt: skip
    assert "of mail.send failed, attempt 1 of 2; it runs again in" in found[2][3]
    assert re.search(r"ConnectionError: no server \(shop.py:\d+ in send\)$", found[2][3])
    assert any("in send" in line for line in lines if line.startswith("    ")), (
        "where the last attempt failed"
    )


@pytest.mark.parametrize(
    ("options", "environment"),
    [(("--log-format", "json", "-p", "1"), {}), ((), {"HOLDFAST_LOG_FORMAT": "json"})],
    ids=["of a child", "by a variable"],
)
def test_one_object_a_line(worker, options, environment):
    lines = [json.loads(line) for line in worker(*options, environment=environment)]
    [failed] = [line for line in lines if line.get("event") == "job.failed"]
    assert (failed["task"], failed["attempt"], failed["queue"]) == ("mail.send", 1, "default")
    [first, _] = [line for line in lines if line["logger"] == "shop"]
    assert (first["message"], first["job_id"]) == ("mail to ada", failed["job_id"])


def test_a_program_with_a_log_of_its_own_keeps_it(worker):
    lines = worker(setup='logging.basicConfig(level="INFO", format="mine %(name)s %(message).12s")')
    assert lines[0] == "mine holdfast.worker worker worke"
    assert all(line.startswith(("mine ", "    ")) for line in lines)


def test_more_and_less(worker):
    assert any("begins, attempt 1" in line for line in worker("-v"))


def test_only_what_is_bad(worker):
    lines = worker(environment={"HOLDFAST_LOG_LEVEL": "error"})
    assert ["is dead" in line for line in lines if LINE.match(line)] == [True]


def test_a_level_that_is_none_is_refused(tmp_path):
    write_program(tmp_path)
    refused = run_process("worker", "shop:hf", folder=tmp_path, environment={"HOLDFAST_LOG_LEVEL": "loud"})
    assert refused.returncode == 2
    assert "HOLDFAST_LOG_LEVEL is 'loud', not one of debug, info, warning, error" in refused.stderr
