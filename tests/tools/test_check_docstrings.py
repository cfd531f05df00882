"""The docstring check finds files that do not say their job."""

from __future__ import annotations

import pytest

from tools.check_docstrings import check
from tools.sources import parse


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import os\n",
        "# a comment is not enough\nx = 1\n",
        '"""\nThe job comes too late.\n"""\n',
        '"" ""\n',
        'b"bytes"\n',
    ],
)
def test_a_file_without_its_job_is_found(text):
    assert [str(problem).split(": ")[0] for problem in check(parse("src/holdfast/x.py", text))] == [
        "src/holdfast/x.py:1"
    ]


def test_a_file_with_its_job_is_fine():
    assert not list(check(parse("src/holdfast/x.py", '"""Do one thing."""\nimport os\n')))
