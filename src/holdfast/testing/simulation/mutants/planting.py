"""How a bug is planted: a function replaced, the text of a statement changed, a key of a table dropped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, TypeVar
from unittest.mock import patch

import apsw

from holdfast.store.sqlite.connection import Db

T = TypeVar("T")


@dataclass(frozen=True)
class Mutant:
    breaks: str
    plant: Callable[[ExitStack], None]
    schema: str = ""  # run on the template
    kind: str = "store"  # of the simulation that must find it


MUTANTS: dict[str, Mutant] = {}


def mutant(
    name: str, schema: str = "", *, kind: str = "store"
) -> Callable[[Callable[[ExitStack], None]], Callable[[ExitStack], None]]:
    def register(plant: Callable[[ExitStack], None]) -> Callable[[ExitStack], None]:
        assert plant.__doc__ is not None
        MUTANTS[name] = Mutant(plant.__doc__, plant, schema, kind)
        return plant

    return register


def replace(stack: ExitStack, place: object, name: str, substitute: object) -> None:
    assert hasattr(place, name), f"{place} has no {name} any more: the mutant must be written anew"
    stack.enter_context(patch.object(place, name, substitute))


def force(stack: ExitStack, place: object, name: str, **options: object) -> None:
    """Call the function as ever, but always with these options."""
    original = getattr(place, name)
    replace(stack, place, name, lambda *given, **named: original(*given, **(named | options)))


def rewrite(stack: ExitStack, *changes: tuple[str, str], only: str = "") -> None:
    """Change the text of SQL statements on their way to SQLite; of those that contain `only`."""
    for old, _ in changes:
        assert any(old in text for text in _sources()), (
            f"no statement says {old!r} any more: write the mutant anew"
        )
    unfit: list[str] = []
    stack.callback(_refuse, unfit)
    for method in ("run", "row", "rows", "value"):
        stack.enter_context(patch.object(Db, method, _rewriting(getattr(Db, method), changes, only, unfit)))


def _refuse(unfit: list[str]) -> None:
    """A statement that SQLite cannot read is no bug that a promise could catch: it only makes noise."""
    assert not unfit, f"a statement was changed by mistake, write the mutant anew: {unfit[0]}"


@cache
def _sources() -> list[str]:
    files = resources.files("holdfast.store.sqlite").iterdir()
    return [file.read_text("utf-8") for file in files if file.name.endswith(".py")]


def _rewriting(original: Any, changes: Sequence[tuple[str, str]], only: str, unfit: list[str]) -> Any:
    def call(db: Db, sql: str, *params: Any) -> Any:
        changed = sql
        if only in sql:
            for old, new in changes:
                changed = changed.replace(old, new)
        try:
            return original(db, changed, *params)
        except (apsw.SQLError, apsw.BindingsError) as error:
            if changed != sql:
                unfit.append(f"{error}: {changed}")
            raise

    return call


def unfence(stack: ExitStack) -> None:
    """Who finishes or renews a job need not have its newest token."""
    rewrite(
        stack,
        (" AND r.token = g.value ->> 1", ""),
        ("r.seq = ? AND r.token = ?", "r.seq = ? AND ? IS NOT NULL"),
        ("WHERE seq = ? AND token = ?", "WHERE seq = ? AND ? IS NOT NULL"),
        only="holdfast_running",
    )


def unkeyed(table: str, columns: str) -> str:
    """A table of what is held, without the primary key that is the promise."""
    return f"DROP TABLE {table}; CREATE TABLE {table} ({columns});"


def beside(call: Callable[[Db], T]) -> Callable[[Db], T]:
    """Do it in a transaction of its own, in the middle of the caller's."""

    def beside(db: Db) -> T:
        db.commit()
        db.begin("IMMEDIATE")
        answer = call(db)
        db.commit()
        db.begin("IMMEDIATE")
        return answer

    return beside
