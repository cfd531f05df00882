"""Arguments marked secret: hidden wherever they are shown, also by those who have no code of the task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any

import msgspec

SECRETS_FIELD = "$secret"  # in stored arguments: which of them are masked
MASK = "***"
_SHORT = 4  # characters
# What must not appear in any line of the job that runs here.
secrets_here: ContextVar[tuple[str, ...]] = ContextVar("holdfast_secrets", default=())


def masked(text: str) -> dict[str, Any] | str:
    """Stored arguments for a listing: what is marked secret is hidden, also from those who have no code of the task."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return "not readable"
    if not isinstance(found, dict):
        return "not an object"
    hidden = found.pop(SECRETS_FIELD, ())
    return {name: MASK if name in hidden else value for name, value in found.items()}


def hidden_in(text: str) -> list[str]:
    """The names of stored arguments that are marked secret."""
    if SECRETS_FIELD not in text:
        return []
    found = msgspec.json.decode(text)
    return list(found.get(SECRETS_FIELD, ())) if isinstance(found, dict) else []


def unmasked(arguments: Mapping[str, Any], stored: str) -> dict[str, Any]:
    """Edited arguments to store: a secret that is still masked is the stored one, and what was secret stays so."""
    found = msgspec.json.decode(stored)
    hidden = found.get(SECRETS_FIELD, ())
    kept = {name: found[name] for name in hidden if arguments.get(name) == MASK}
    return {**arguments, **kept, **({SECRETS_FIELD: hidden} if hidden else {})}


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text without these, in whatever form it may show them: as they are, in a repr, in JSON."""
    for secret in secrets:
        for form in {secret, repr(secret)[1:-1], msgspec.json.encode(secret).decode()[1:-1]}:
            text = text.replace(form, MASK) if len(form) > _SHORT else _alone(form).sub(MASK, text)
    return text


def _alone(form: str) -> re.Pattern[str]:
    """A secret of a few letters, such as the subject "1", is no part of a longer word: else no id in a line could be read."""
    return re.compile(rf"(?<![^\W_]){re.escape(form)}(?![^\W_])")


def secret_values(text: str) -> list[str]:
    """The texts that must not appear in an error of this job."""
    if SECRETS_FIELD not in text:
        return []
    found = msgspec.json.decode(text)
    return sorted(_texts([found.get(name) for name in found[SECRETS_FIELD]]), key=len, reverse=True)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
