"""Checks the arguments of the verbs about sessions of web pages."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_text
from holdfast.kernel.show import show
from holdfast.store.visit_records import DATA_LIMIT, NewVisit


def check_new_visit(visit: Any) -> None:
    if not isinstance(visit, NewVisit):
        raise UsageError(f"A visit to begin is a NewVisit, not {show(visit)} ({type(visit).__name__}).")


def check_data(data: Any) -> None:
    check_text("data", data, DATA_LIMIT)
