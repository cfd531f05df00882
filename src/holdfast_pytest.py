"""Fixtures of Holdfast for pytest. Outside the package, so that a run that uses none of them imports nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdfast import Holdfast
    from holdfast.testing import ManualClock


@pytest.fixture
def manual_clock() -> Generator[ManualClock, None, None]:
    """A clock that stands still until `manual_clock.advance(seconds)`; ask for it before the store is opened."""
    from holdfast.testing import ManualClock  # noqa: PLC0415

    with ManualClock() as clock:
        yield clock


@pytest.fixture
def holdfast_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'holdfast.db'}"


@pytest.fixture
def fresh_holdfast(
    holdfast_url: str,
) -> Callable[[Holdfast], AbstractAsyncContextManager[Holdfast]]:
    """`async with fresh_holdfast(hf):` opens a program on a new SQLite file, and leaves it as it was."""
    from holdfast.testing import fresh  # noqa: PLC0415

    return partial(fresh, url=holdfast_url)
