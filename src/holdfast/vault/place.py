"""Where a sealed value is kept: it opens there and nowhere else."""

from __future__ import annotations

import json

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show


class Place(msgspec.Struct, frozen=True):
    """The table, the column, the row by its key, and the tenant whose row it is ("" where there are none)."""

    table: str
    column: str
    row: str
    tenant: str = ""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not isinstance(value, str):
                raise UsageError(
                    f"{name} of a Place is text; got {show(value)}. Write str() of it, the same each time."
                )
            if not value and name != "tenant":
                raise UsageError(
                    f"{name} of a Place is empty. A value without a place of its own could be moved to another."
                )

    def bound_to(self, key_id: str) -> bytes:
        """What is authenticated with the value. No two places have the same bytes, whatever is in the names."""
        return json.dumps([1, self.table, self.column, self.row, self.tenant, key_id]).encode()
