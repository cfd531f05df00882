"""One migrated template file for all simulations of a test process, and a folder that all test processes share."""

from __future__ import annotations

import pytest

from holdfast.testing.simulation.template import template as made_template


@pytest.fixture(scope="session")
def template():
    with made_template() as made:
        yield made


@pytest.fixture(scope="session")
def shared(tmp_path_factory, worker_id):
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent
