"""Sealed columns of SQLAlchemy models: a type that takes nothing but sealed text, and an attribute that seals and opens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from sqlalchemy import Text, TypeDecorator
from sqlalchemy.engine import Dialect

from holdfast.kernel.errors import UsageError
from holdfast.vault.place import Place
from holdfast.vault.secret_value import SecretValue
from holdfast.vault.vault import Vault, is_sealed

__all__ = ["SealedAttribute", "SealedText"]


class SealedText(TypeDecorator[str]):
    """The column's type. What is not sealed is refused before it reaches the database, also in bulk statements."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002  SQLAlchemy gives it
        if value is None or is_sealed(value):
            return value  # type: ignore[no-any-return]
        raise UsageError(
            "This column keeps sealed text only, and what it was given is not sealed. Set it by its SealedAttribute, "
            "or give it what vault.seal() returns."
        )


class SealedAttribute:
    """`token = SealedAttribute(hf.vault, "_token", row="id")`: set text, get a SecretValue; the row is sealed to its key.

    `column` names the model's attribute of type SealedText, `row` the one of its primary key, `tenant` the one of whose row it is.
    The key must be known when the secret is set: give rows their ids yourself, or flush first.
    """

    def __init__(self, vault: Vault, column: str, *, row: str = "id", tenant: str | None = None) -> None:
        self._vault, self._column, self._row, self._tenant = vault, column, row, tenant

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> SealedAttribute: ...
    @overload
    def __get__(self, instance: object, owner: type) -> SecretValue | None: ...
    def __get__(self, instance: object | None, owner: type) -> SealedAttribute | SecretValue | None:
        if instance is None:
            return self
        sealed = getattr(instance, self._column)
        return None if sealed is None else self._vault.open(sealed, self.place(instance))

    def __set__(self, instance: object, value: str | SecretValue | None) -> None:
        sealed = None if value is None else self._vault.seal(value, self.place(instance))
        setattr(instance, self._column, sealed)

    def place(self, instance: object) -> Place:
        """Where this row keeps it."""
        mapper: Any = type(instance).__mapper__  # type: ignore[attr-defined]
        [column] = mapper.attrs[self._column].columns
        return Place(
            table=column.table.fullname,
            column=column.name,
            row=self._part(instance, self._row, _key),
            tenant=self._part(instance, self._tenant, str) if self._tenant is not None else "",
        )

    def _part(self, instance: object, name: str, text: Callable[[object], str]) -> str:
        value = getattr(instance, name)
        if value is None:
            raise UsageError(
                f"{type(instance).__name__}.{self._name} is sealed to the row's {name}, which is not known yet. "
                f"Set {name} first, or flush the session."
            )
        return text(value)


def _key(value: object) -> str:
    return str(value)
