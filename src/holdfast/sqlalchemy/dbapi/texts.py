"""What a statement is, by its first words; and those that a connection does not take."""

from __future__ import annotations

import re

from holdfast.kernel.errors import UsageError

_LEADING = r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_ENDS = re.compile(
    _LEADING
    + r"(begin|(start|prepare)\s+transaction|commit|end|abort|rollback(?!\s+((work|transaction)\s+)?to\b))\b",
    re.IGNORECASE | re.DOTALL,
)
_SAVEPOINT = re.compile(
    _LEADING + r"(savepoint|release|rollback\s+(transaction\s+)?to)\b", re.IGNORECASE | re.DOTALL
)
_CHANGES_ROWS = re.compile(_LEADING + r"(insert|update|delete|replace|with)\b", re.IGNORECASE | re.DOTALL)
_STAYS = re.compile(
    _LEADING + r"(attach|detach|vacuum|create\s+temp(orary)?)\b|^[^'\"]*?\bcreate\s+\w+\s+temp\.",
    re.IGNORECASE | re.DOTALL,
)
_PRAGMA = re.compile(
    _LEADING + r"""pragma\s+(?:(?:\w+|"[^"]*")\s*\.\s*)?(\w+)\s*(.*)$""",
    re.IGNORECASE | re.DOTALL,
)
_TELLS = frozenset(
    [
        "table_info",
        "table_xinfo",
        "table_list",
        "index_info",
        "index_xinfo",
        "index_list",
        "foreign_key_list",
        "foreign_key_check",
        "integrity_check",
        "quick_check",
        "database_list",
        "collation_list",
        "function_list",
        "module_list",
        "pragma_list",
        "compile_options",
    ]
)
_SETS_WITHOUT_VALUE = frozenset(
    ["optimize", "incremental_vacuum", "wal_checkpoint", "shrink_memory", "schema_version"]
)


def ends_transaction(sql: str) -> bool:
    """BEGIN, COMMIT, END or ROLLBACK, also as PostgreSQL writes them."""
    return _ENDS.match(sql) is not None


def is_savepoint(sql: str) -> bool:
    return _SAVEPOINT.match(sql) is not None


def changes_rows(sql: str) -> bool:
    """Whether a number of changed rows means anything for it."""
    return _CHANGES_ROWS.match(sql) is not None


def refuse_end(sql: str) -> None:
    if ends_transaction(sql):
        raise UsageError(
            f"{sql.strip()!r} would begin or end a transaction behind SQLAlchemy's back. "
            "Call begin(), commit() or rollback() of the session or the connection."
        )


def refuse_what_stays(sql: str) -> None:
    """All sessions write through one connection, and read through connections that are used again."""
    if _STAYS.match(sql) or ((pragma := _PRAGMA.match(sql)) and not _only_tells(pragma)):
        raise UsageError(
            f"{sql.strip()!r} would change a connection that others use too. Use ordinary tables of the store's own file; "
            "for PRAGMA, ATTACH and VACUUM open the file with `create_engine('sqlite+holdfast:///file')` in another process."
        )


def _only_tells(pragma: re.Match[str]) -> bool:
    name, rest = pragma[1].lower(), pragma[2].strip("; \t\r\n")
    if name in _TELLS:
        return not rest.startswith("=")
    return not rest and name not in _SETS_WITHOUT_VALUE
