"""The history of an application, and the statement that moves it from one state to another."""

from __future__ import annotations

from typing import Any

import msgspec

from admissions.core import hf
from admissions.domain.states import PROGRESS, State, sources
from holdfast import Tx


async def happened(tx: Tx, application_id: str, kind: str, *, inner: bool = False, **values: Any) -> None:
    """One line; its sentence is written by `kind` in each language, with these values."""
    await tx.execute(
        "INSERT INTO steps (application_id, at, kind, words, is_inner) VALUES ($1, $2, $3, $4, $5)",
        application_id,
        await hf.now(),
        kind,
        msgspec.json.encode(values).decode(),
        inner,
    )


async def move(tx: Tx, application_id: str, after: State, *, reason: str = "") -> bool:
    """Whether it was in a state from which it may come to this one. Progress never falls."""
    places = [str(each) for each in sorted(sources(after))]
    now = await hf.now()
    states = ", ".join(f"${6 + number}" for number in range(len(places)))
    changed = await tx.execute(
        "UPDATE applications SET state = $1, reason = $2, changed_at = $3, version = version + 1, failed_in = '', "  # noqa: S608
        "progress = CASE WHEN progress > $4 THEN progress ELSE $4 END "
        f"WHERE id = $5 AND state IN ({states})",
        str(after),
        reason,
        now,
        PROGRESS[after],
        application_id,
        *places,
    )
    return changed == 1


async def state_of(tx: Tx, application_id: str) -> State | None:
    rows = await tx.fetch("SELECT state FROM applications WHERE id = $1", application_id)
    return State(rows[0][0]) if rows else None
