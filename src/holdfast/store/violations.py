"""How a broken constraint is told, without the values that have broken it: they may be secret."""

from __future__ import annotations

from holdfast.kernel.errors import (
    CheckViolation,
    ConstraintViolation,
    ForeignKeyViolation,
    NotNullViolation,
    UniqueViolation,
)

_SAYS: dict[type[ConstraintViolation], str] = {
    UniqueViolation: "A row with this key is there already",
    ForeignKeyViolation: "A row refers to one that is not there, or is still referred to",
    CheckViolation: "A CHECK is not met",
    NotNullViolation: "A column that must have a value has none",
    ConstraintViolation: "A rule of the tables is broken",
}


def raised(text: str) -> ConstraintViolation:
    """By a trigger or a function: in words that were written for the caller."""
    return ConstraintViolation(f"The database refused it: {text.rstrip('.')}.")


def violation(
    kind: type[ConstraintViolation],
    *,
    constraint: str | None = None,
    table: str | None = None,
    columns: tuple[str, ...] = (),
) -> ConstraintViolation:
    where = f"{table}: {', '.join(columns)}" if table and columns else table or ", ".join(columns)
    name = f"constraint {constraint}" if constraint else ""
    details = "; ".join(filter(None, [where, name]))
    message = f"{_SAYS[kind]} ({details})." if details else f"{_SAYS[kind]}."
    return kind(message, constraint=constraint, table=table, columns=columns)
