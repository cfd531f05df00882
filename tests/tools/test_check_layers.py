"""The layer check finds imports that go up, sideways or around, however they are written."""

from __future__ import annotations

import pytest

from tools.check_layers import LAYERS, check
from tools.sources import ROOT, parse, read


def problems(path: str, text: str) -> list[str]:
    return [str(problem) for problem in check(parse(f"src/holdfast/{path}", text))]


BAD = {
    "up": ("kernel/x.py", "import holdfast.store", "higher layer"),
    "up, by name": ("store/x.py", "from holdfast.jobs.cron import fires", "higher layer"),
    "up, from the root": ("jobs/x.py", "from holdfast import runtime", "higher layer"),
    "up, with an alias": ("jobs/x.py", "import holdfast.events.bus as bus", "higher layer"),
    "sideways": ("guards/x.py", "from holdfast.store.records import Job", "sibling"),
    "sideways, high up": ("sagas/x.py", "from holdfast.views import view", "sibling"),
    "relative": ("jobs/x.py", "from ..events import bus", "higher layer"),
    "relative, from a package": ("jobs/__init__.py", "from ..events import bus", "higher layer"),
    "relative, deep": ("store/sqlite/x.py", "from ...jobs import cron", "higher layer"),
    "for types only": (
        "store/x.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from holdfast.jobs import cron",
        "higher layer",
    ),
    "in a function": ("kernel/x.py", "def f():\n    import holdfast.runtime", "higher layer"),
    "by importlib": (
        "kernel/x.py",
        "import importlib\nimportlib.import_module('holdfast.runtime.cli')",
        "higher layer",
    ),
    "the public list": ("jobs/x.py", "from holdfast import Job", "public list"),
    "the whole": ("testing/x.py", "import holdfast", "public list"),
    "a star": ("jobs/x.py", "from holdfast import *", "public list"),
    "store knows sqlite": (
        "store/ports.py",
        "from holdfast.store.sqlite import store",
        "do not know their implementations",
    ),
    "store knows postgres": (
        "store/__init__.py",
        "from . import postgres",
        "do not know their implementations",
    ),
    "sqlite knows postgres": (
        "store/sqlite/x.py",
        "from holdfast.store.postgres.jobs import sql",
        "each other",
    ),
    "postgres knows sqlite": ("store/postgres/x.py", "from ..sqlite import jobs", "each other"),
    "an unknown layer": ("helpers/x.py", "import os", "no layer"),
    "imports an unknown layer": ("jobs/x.py", "import holdfast.helpers", "no layer"),
    "a loose module": ("loose.py", "import os", "no layer"),
}


@pytest.mark.parametrize(("path", "text", "reason"), BAD.values(), ids=BAD.keys())
def test_a_bad_import_is_found(path, text, reason):
    found = problems(path, f'"""Job."""\n{text}\n')
    assert len(found) == 1
    assert reason in found[0]
    assert found[0].startswith(f"src/holdfast/{path}:")


GOOD = {
    "down": ("jobs/x.py", "from holdfast.kernel.clock import now\nfrom holdfast.store import records"),
    "own layer": ("jobs/x.py", "from holdfast.jobs.cron import fires\nfrom . import cron"),
    "own backend": ("store/sqlite/x.py", "from holdfast.store.sqlite import jobs\nfrom ..records import Job"),
    "backend to store": ("store/postgres/x.py", "from holdfast.store import ports"),
    "others' packages": ("kernel/x.py", "import msgspec\nimport holdfastish"),
    "testing sees all": (
        "testing/x.py",
        "from holdfast.runtime import cli\nfrom holdfast.store.sqlite import store",
    ),
    "the top": ("__init__.py", "from holdfast.runtime import app\nfrom holdfast.testing import clock"),
    "the module runner": ("__main__.py", "from holdfast.runtime.cli import main"),
}


@pytest.mark.parametrize(("path", "text"), GOOD.values(), ids=GOOD.keys())
def test_a_good_import_passes(path, text):
    assert not problems(path, f'"""Job."""\n{text}\n')


def test_every_folder_of_the_code_is_a_layer():
    folders = {
        path.name
        for path in (ROOT / "src/holdfast").iterdir()
        if path.is_dir() and not path.name.startswith("_")
    }
    assert folders <= LAYERS.keys()


def test_the_code_itself_passes():
    assert not [problem for source in read("src/holdfast") for problem in check(source)]
