"""Sessions of SQLAlchemy over this store's own connections: the transaction that one of them carries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from holdfast.kernel.errors import WrongConnection
from holdfast.store.sqlite.refusals import DRIVER, driver_of, is_engine, refuse
from holdfast.store.sqlite.transaction import SqliteTx


class Carrier(ABC):
    """A driver's connection, as SQLAlchemy has it in its pool."""

    @property
    @abstractmethod
    def lent(self) -> SqliteTx | None:
        """Its transaction, once it has begun."""

    @abstractmethod
    async def lend(self) -> SqliteTx:
        """Its transaction, begun when it was not: that takes the write lock."""


async def adopt(tx: Any) -> SqliteTx:
    """Raise WrongConnection for what has no transaction of this kind of store, without touching its file."""
    if not driver_of(tx).startswith(DRIVER) or is_engine(tx):
        refuse(tx)
    from sqlalchemy.exc import InvalidRequestError, PendingRollbackError  # noqa: PLC0415  it is loaded

    try:
        if hasattr(tx, "sync_session"):
            await tx.connection()
        return await _carrier(tx).lend()
    except PendingRollbackError as error:
        raise WrongConnection(
            "This session has failed: an earlier statement raised an error. Roll it back, and do the work again."
        ) from error
    except InvalidRequestError as error:
        raise WrongConnection(f"SQLAlchemy cannot use this connection or session: {error}") from error


def lent_by(tx: Any) -> SqliteTx:
    """What `adopt` has given for it a moment ago."""
    lent = _carrier(tx).lent
    assert lent is not None
    return lent


def _carrier(tx: Any) -> Carrier:
    tx = getattr(tx, "sync_session", None) or getattr(tx, "sync_connection", tx)
    if tx is None:
        raise WrongConnection("This connection of SQLAlchemy was not begun. Use it inside `async with`.")
    connection = tx.connection() if hasattr(tx, "get_bind") else tx
    raw = connection.connection.dbapi_connection
    if not isinstance(raw, Carrier):
        raise WrongConnection(
            "This connection of SQLAlchemy has the file to itself, so a job would not commit with it. Pass a session of "
            "`hf.session()` or `hf.blocking.session()`."
        )
    return raw
