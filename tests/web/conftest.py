"""A shop on both stores."""

from __future__ import annotations

import pytest
from edge import Shop, tables


@pytest.fixture
async def shop(hf):
    await tables(hf)
    return Shop(hf)
