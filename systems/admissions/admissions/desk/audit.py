"""The audit log: every look at personal data, and every change, with who and when."""

from __future__ import annotations

from dataclasses import dataclass

from admissions.core import hf
from holdfast import Tx


@dataclass(frozen=True)
class Look:
    id: int
    at: float
    person_id: str
    what: str
    subject: str
    words: str


async def looked(tx: Tx, person_id: str, what: str, subject: str, words: str = "") -> None:
    """In the transaction of the look, or of the change: what is not logged was not seen."""
    await tx.execute(
        "INSERT INTO looks (at, person_id, what, subject, words, correlation_id) VALUES ($1, $2, $3, $4, $5, '')",
        await hf.now(),
        person_id,
        what,
        subject,
        words,
    )


async def log(
    *, subject: str | None = None, person_id: str | None = None, before: int | None = None, limit: int = 100
) -> list[Look]:
    """The newest first."""
    wheres, values = ["1 = 1"], list[object]()
    for column, sign, value in (
        ("subject", "=", subject),
        ("person_id", "=", person_id),
        ("id", "<", before),
    ):
        if value is not None:
            values.append(value)
            wheres.append(f"{column} {sign} ${len(values)}")
    values.append(limit)
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            f"SELECT id, at, person_id, what, subject, words FROM looks WHERE {' AND '.join(wheres)} ORDER BY id DESC LIMIT ${len(values)}",  # noqa: S608
            *values,
        )
    return [Look(*row) for row in rows]
