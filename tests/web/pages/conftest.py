"""An app of one page."""

from __future__ import annotations

import pytest
from one_page import OnePage


@pytest.fixture
def one():
    return OnePage()
