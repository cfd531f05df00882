"""Numbered SQL files with checksums: which are applied, which are to come, and whether the tables fit this version."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from importlib import resources

import msgspec

from holdfast.kernel.errors import SchemaChanged, SchemaTooNew

_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


class Migration(msgspec.Struct, frozen=True):
    number: int
    name: str  # 0001_jobs
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load(package: str) -> list[Migration]:
    """The migrations in a package's folder, in order; their numbers have no gaps."""
    files = [item for item in resources.files(package).iterdir() if _NAME.fullmatch(item.name)]
    found = [
        Migration(int(item.name[:4]), item.name.removesuffix(".sql"), item.read_text("utf-8"))
        for item in sorted(files, key=lambda item: item.name)
    ]
    assert [migration.number for migration in found] == list(range(1, len(found) + 1)), "numbers have a gap"
    return found


def pending(known: list[Migration], applied: Mapping[int, str]) -> list[Migration]:
    """What is still to be applied, given the checksums of what was. Raises when the tables are newer or changed."""
    newest = max(applied, default=0)
    if newest > len(known):
        raise SchemaTooNew(
            f"The tables are at migration {newest:04}; this Holdfast knows {len(known):04} at most. "
            "Deploy the newer Holdfast here too."
        )
    for migration in known:
        if applied.get(migration.number, migration.checksum) != migration.checksum:
            raise SchemaChanged(
                f"Migration {migration.name} was applied to these tables in another form than this version has. "
                "Applied migrations are never edited; restore the file, or install the version that applied it."
            )
    return [migration for migration in known if migration.number not in applied]
