"""People as administrators see them: by name, address and role; and who of the staff can be handed a case."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from admissions.core import hf
from admissions.domain.roles import Role


@dataclass(frozen=True)
class Entry:
    id: str
    name: str
    mail: str
    role: Role
    made_at: float
    is_confirmed: bool
    is_blocked: bool


async def listing(
    *,
    search: str = "",
    role: Role | None = None,
    after: str | None = None,
    before: str | None = None,
    limit: int = 50,
) -> list[Entry]:
    """By their addresses, after one, or those before one, the next first."""
    wheres, values = ["mail NOT LIKE 'deleted-%'"], list[object]()

    def add(sql: str, value: object) -> None:
        values.append(value)
        wheres.append(sql.format(f"${len(values)}"))

    if search.strip():
        text = search.strip().lower()
        for sign in "!%_":
            text = text.replace(sign, f"!{sign}")
        add("(lower(name) LIKE {0} ESCAPE '!' OR mail LIKE {0} ESCAPE '!')", f"%{text}%")
    if role is not None:
        add("role = {}", str(role))
    if after is not None:
        add("mail > {}", after)
    if before is not None:
        add("mail < {}", before)
    values.append(limit)
    order = "mail DESC" if before is not None else "mail"
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id, name, mail, role, made_at, confirmed_at, blocked_at FROM people "  # noqa: S608  our own names
            f"WHERE {' AND '.join(wheres)} ORDER BY {order} LIMIT ${len(values)}",
            *values,
        )
    return [
        Entry(found, name, mail, Role(its), made, confirmed is not None, blocked is not None)
        for found, name, mail, its, made, confirmed, blocked in rows
    ]


async def officers() -> list[tuple[str, str]]:
    """Ids and names of those who may work on cases."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id, name FROM people WHERE role IN ('officer', 'administrator') AND blocked_at IS NULL ORDER BY name, id LIMIT 200"
        )
    return [(str(found), str(name)) for found, name in rows]


async def names(ids: Collection[str]) -> dict[str, str]:
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    places = ", ".join(f"${number}" for number in range(1, len(wanted) + 1))
    async with hf.transaction() as tx:
        rows = await tx.fetch(f"SELECT id, name FROM people WHERE id IN ({places})", *wanted)  # noqa: S608
    return {str(found): str(name) for found, name in rows}
