"""Tools for developers: the set-up, and the checks that ruff and mypy do not have."""
