"""Default values of an automation: each says whether it fills what is empty, or counts always."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from publisher.domain.posts import Details, License

FIELDS = tuple(each.name for each in fields(Details) if each.name not in ("title", "agreed"))


class When(StrEnum):
    EMPTY = "if_empty"
    ALWAYS = "always"


@dataclass(frozen=True)
class Default:
    value: Any
    when: When = When.EMPTY


def is_empty(value: object) -> bool:
    """Nothing was said. No and 0 are answers."""
    return value is None or value in ("", ()) or value == License()


def apply(details: Details, defaults: Mapping[str, Default]) -> Details:
    """The details with these defaults. A name that is no field is an error of whoever stored it."""
    if wrong := sorted(set(defaults) - set(FIELDS)):
        raise ValueError(f"{wrong[0]!r} has no default; there are: {', '.join(FIELDS)}.")
    changed = {
        name: default.value
        for name, default in defaults.items()
        if default.when is When.ALWAYS or is_empty(getattr(details, name))
    }
    return replace(details, **changed)
