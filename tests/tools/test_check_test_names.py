"""The check of test names finds two files that cannot be collected together."""

from __future__ import annotations

from tools.check_test_names import check


def test_a_name_that_is_taken_is_found():
    paths = ["tests/a/test_one.py", "tests/b/conftest.py", "tests/b/test_one.py", "tests/c/conftest.py"]
    assert [str(problem).split(",")[0] for problem in check(paths)] == [
        "tests/b/test_one.py:1: has the name of tests/a/test_one.py"
    ]


def test_names_of_their_own_are_fine():
    assert not list(check(["tests/a/test_one.py", "tests/b/test_two.py"]))
