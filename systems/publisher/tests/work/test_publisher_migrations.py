"""The migrations make what the models say, on both stores, and the seed fits them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from publisher_server import ENVIRONMENT

ROOT = Path(__file__).parents[4]
CHECK = "from alembic import command; from publisher.migrating import config; command.check(config())"


def run(url, folder, *arguments):
    paths = os.pathsep.join((str(ROOT), str(ROOT / "systems/publisher")))
    environment = {**os.environ, **ENVIRONMENT, "DATABASE_URL": url, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_models_and_migrations_agree(store, tmp_path, request):
    url = (
        f"sqlite:///{tmp_path}/publisher.db"
        if store == "sqlite"
        else request.getfixturevalue("empty_postgres_url")
    )
    for _ in range(2):  # the second one changes nothing
        code, told = run(url, tmp_path, "-m", "publisher.main", "migrate")
        assert code == 0, told
    code, told = run(url, tmp_path, "-c", CHECK)
    assert code == 0, told
