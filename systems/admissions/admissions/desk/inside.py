"""The caller's transaction, or one of our own: each verb of the desk is one commit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from admissions.core import hf
from holdfast import Tx


@asynccontextmanager
async def inside(tx: Tx | None) -> AsyncIterator[Tx]:
    if tx is not None:
        yield tx
        return
    async with hf.transaction() as own:
        yield own
