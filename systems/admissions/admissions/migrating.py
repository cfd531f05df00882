"""Bring the tables up to date: Holdfast's, and then the portal's own by Alembic."""

from __future__ import annotations

import asyncio
from pathlib import Path

from alembic import command
from alembic.config import Config

from admissions.core import hf, settings

FOLDER = Path(__file__).parent / "migrations"


def config() -> Config:
    made = Config()
    made.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return made


def bring_up_to_date() -> str:
    """What was done, in a sentence."""
    applied = asyncio.run(_holdfast())
    command.upgrade(config(), "head")
    own = (
        f"{len(applied)} migrations of Holdfast were applied"
        if applied
        else "Holdfast's tables were up to date"
    )
    return f"{own}; the portal's are at their newest, in {settings.database_url.partition('://')[0]}."


async def _holdfast() -> list[str]:
    return list(await hf.migrate())
