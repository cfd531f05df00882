"""What stands on Holdfast uses what is public of it."""

from __future__ import annotations

import pytest

from tools.check_systems import check, main
from tools.sources import parse

WORK, DOMAIN = (
    "systems/publisher/publisher/work/publishing.py",
    "systems/publisher/publisher/domain/states.py",
)
TEST = "systems/publisher/tests/test_publishing.py"


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        (WORK, "from holdfast.jobs.job import Job", "no public part of holdfast"),
        (WORK, "import holdfast.kernel.clock", "no public part of holdfast"),
        (WORK, "from admissions.domain import states", "systems share no code"),
        (WORK, "from simulators.deviantart.app import Simulator", "only tests and make start simulators"),
        (DOMAIN, "from holdfast import Job", "the standard library is all it needs"),
        (DOMAIN, "import sqlalchemy", "the standard library is all it needs"),
        (TEST, "from holdfast.store.sqlite.store import SqliteStore", "no public part of holdfast"),
        ("simulators/stripe/app.py", "from holdfast import Holdfast", "would hide"),
        ("simulators/stripe/app.py", "def f():\n    import holdfast", "would hide"),
    ],
)
def test_a_bad_import_is_found(path, text, reason):
    [problem] = check(parse(path, text))
    assert reason in problem.message


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            WORK,
            "from holdfast import Holdfast, Job\nfrom holdfast.web import pages\nfrom holdfast.web.pages import Pages",
        ),
        (WORK, "from publisher.domain.states import State\nimport sqlalchemy"),
        (DOMAIN, "from dataclasses import dataclass\nfrom publisher.domain.posts import Post"),
        (TEST, "from simulators.deviantart.app import Simulator\nfrom holdfast.testing import drain"),
        ("simulators/stripe/app.py", "from simulators.common.clock import Clock\nimport starlette"),
    ],
)
def test_a_good_import_passes(path, text):
    assert list(check(parse(path, text))) == []


def test_the_code_itself_passes():
    assert main() == 0
