"""What is stored in one transaction belongs to one story, named after what was stored first."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.jobs.blocking import inner

_stories: WeakKeyDictionary[object, str] = WeakKeyDictionary()  # by transaction


def story_in(tx: object, first: str, given: str | None) -> str | None:
    """The correlation id of what is stored in `tx` now; `given` by its caller counts, and is that of what comes later, too.

    None: `tx` is no transaction that can be told from the next one of the same connection, or there is none.
    """
    if tx is None or (transaction := _transaction_of(inner(tx))) is None:
        return given
    with suppress(TypeError):  # an object that cannot be remembered
        known = _stories.setdefault(transaction, given or first)
        return given or known
    return given


def _transaction_of(tx: Any) -> object | None:
    """A connection or session of SQLAlchemy has many, one after the other; other drivers have no object for one."""
    if hasattr(tx, "savepoint"):  # ours
        ours: object = tx
        return ours
    for part in ("sync_session", "sync_connection"):
        tx = getattr(tx, part, tx)
    if hasattr(tx, "get_transaction"):
        begun: object | None = tx.get_transaction()
        return begun
    return None
