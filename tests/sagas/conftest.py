"""The world of the kit is empty before each test."""

from __future__ import annotations

import pytest
import saga_kit


@pytest.fixture(autouse=True)
def world():
    saga_kit.forget()
    yield saga_kit
    saga_kit.forget()
