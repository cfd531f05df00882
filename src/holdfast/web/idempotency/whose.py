"""Whose key it is: the same text from somebody else is another key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TypeAlias

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show
from holdfast.web.asgi import Scope, header

WhoIs: TypeAlias = Callable[[Scope], str | None]
_LONGEST = 200  # bytes: the four names of a key stand in one index
PRINCIPAL, TENANT = "principal", "tenant"  # in `scope["state"]`, where sessions and programs put them


def principal_of(scope: Scope) -> str | None:
    """Who has logged in: `request.state.principal`, else one for each value of the Authorization header."""
    if (found := _state(scope).get(PRINCIPAL)) is not None:
        return str(found)
    credentials = header(scope, b"authorization")
    return None if credentials is None else "auth-" + _hash(credentials)


def tenant_of(scope: Scope) -> str | None:
    """`request.state.tenant`."""
    found = _state(scope).get(TENANT)
    return None if found is None else str(found)


def name_of(kind: str, found: object) -> str:
    """As a part of the key's name: nobody is empty, and what is too long or no name is hashed."""
    if found is None or found == "":
        return ""
    if not isinstance(found, str):
        raise UsageError(
            f"The {kind} of a request is text or None, not {show(found)} ({type(found).__name__})."
        )
    if len(found.encode("utf-8", "surrogatepass")) > _LONGEST:
        return "sha-" + _hash(found)
    try:
        return check_name(kind, found)
    except UsageError:  # whoever sends a request chooses its path
        return "sha-" + _hash(found)


def _state(scope: Scope) -> Mapping[str, object]:
    found = scope.get("state")
    return found if isinstance(found, Mapping) else {}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
