"""The whole program: `holdfast worker publisher.program:hf`. What is declared anywhere is imported here."""

from __future__ import annotations

from publisher import numbers
from publisher.core import hf
from publisher.probing import probe_app
from publisher.work import (
    automating,
    cleaning,
    exporting,
    leaving,
    previews,
    publishing,
    resources,
    strays,
    tokens,
)

__all__ = [
    "automating",
    "cleaning",
    "exporting",
    "hf",
    "leaving",
    "numbers",
    "previews",
    "probe_app",
    "publishing",
    "resources",
    "strays",
    "tokens",
]
