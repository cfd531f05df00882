"""One migrated template file for all simulations of a test process."""

from __future__ import annotations

import pytest

from holdfast.testing.simulation.template import template as made_template


@pytest.fixture(scope="session")
def template():
    with made_template() as made:
        yield made
