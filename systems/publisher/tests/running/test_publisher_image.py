"""The image, without a Docker engine: each of its steps is read, and what can be run elsewhere is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deployed import DEPLOY, ROOT, copies, runs, steps

from tools import system_lock


def test_the_lock_is_what_the_tool_makes():
    assert (DEPLOY / "requirements.txt").read_text() == system_lock.locked("publisher"), (
        "run `make lock-systems`"
    )


def test_the_image_has_versions_and_no_rights():
    told = {}
    for name, said in steps():
        told.setdefault(name, []).append(said)
    assert all(":" in each and not each.endswith(":latest") for each in told["FROM"])
    [user] = told["USER"]
    assert user.split(":")[0].isdigit()
    assert int(user.split(":")[0]) > 0
    assert ["pip" in part for part in told["RUN"]].count(True) == 2
    assert not [each for each in told["ENV"] if "SECRET" in each or "PASSWORD" in each or "KEYS" in each]
    assert told["ENTRYPOINT"] == ['["publisher"]']


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """What the image has: the build's steps are run one by one, and /app is a folder here."""
    folder = tmp_path_factory.mktemp("image")
    build, app = folder / "build", folder / "app"
    build.mkdir()
    for sources, target in copies():
        for source in sources:
            place = build / target / Path(source).name if target.endswith("/") else build / target
            place.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, place)
    for command in runs():
        _run(command, build, app)
    return app


def _run(command, build, app):
    """pip as it is called there: our own packages are built and installed, and of the others it is asked whether the lock can be met."""
    match command:
        case ["python", "-m", "venv", "/app"] | ["mkdir", "-p", "/data/files"]:
            return  # /app is a folder of this test
        case ["/app/bin/pip", "install", *options]:
            more = ["--target", str(app)] if "--no-deps" in options else ["--no-index"]
            told = [sys.executable, "-m", "pip", "install", *options, *more, "--disable-pip-version-check"]
        case _:
            raise AssertionError(f"a step that nobody tries: {command}")
    done = subprocess.run(told, cwd=build, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_each_step_of_the_build_is_run_and_what_it_makes_runs(built, tmp_path):
    """The program is whole: templates, pictures and migrations are in it, and it finds its tables."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PUBLISHER_")}
    environment |= {"PYTHONPATH": str(built), "DATABASE_URL": f"sqlite:///{tmp_path / 'image.db'}"}
    code = "import publisher.main, holdfast, publisher.web.app as web; print(publisher.main.__file__, holdfast.__file__, len(web.app.routes))"
    where = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert where.returncode == 0, where.stderr
    assert where.stdout.count(str(built)) == 2, where.stdout
    migrated = subprocess.run(
        [sys.executable, built / "bin/publisher", "migrate"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert migrated.returncode == 0, migrated.stderr
    assert "the publisher's are at their newest" in migrated.stdout
    for part in ("web/templates/today.html", "web/static/own.css", "migrations/versions/0001_tables.py"):
        assert (built / "publisher" / part).is_file()
