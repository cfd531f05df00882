"""The tree that is drawn is the tree that is."""

from __future__ import annotations

import re

import holdfast.errors
from holdfast.kernel import errors


def drawn() -> dict[str, str]:
    """Each error with the one above it, as the docstring draws them."""
    above: dict[str, str] = {}
    stack: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"([│├└─ ]*)([A-Z]\w+)(?:\s|$)", line):
            depth = len(found[1]) // 4
            if depth or found[2] == "HoldfastError":
                stack[depth:] = [found[2]]
                above[found[2]] = stack[depth - 1] if depth else "Exception"
    return above


def test_the_tree_is_complete_and_right():
    classes = {
        name: each
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, Exception)
    }
    assert drawn() == {name: each.__bases__[0].__name__ for name, each in classes.items()}


def test_every_error_says_what_it_means():
    assert all(each.__doc__ for each in vars(errors).values() if isinstance(each, type))


def test_wrong_calls_are_value_errors_too():
    assert issubclass(errors.PayloadError, ValueError)


def test_the_public_module_has_all_of_them():
    classes = {name for name, each in vars(errors).items() if isinstance(each, type)}
    assert set(holdfast.errors.__all__) == classes
    assert all(getattr(holdfast.errors, name) is getattr(errors, name) for name in classes)


def test_a_violation_says_where_as_far_as_that_is_known():
    error = errors.UniqueViolation("taken", table="orders", columns=("id",))
    assert (error.constraint, error.table, error.columns) == (None, "orders", ("id",))
    assert isinstance(error, errors.ConstraintViolation)
