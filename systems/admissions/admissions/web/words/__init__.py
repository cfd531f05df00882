"""The sentences of pages and refusals, one file for each language. Values are put in as text, and never as a template."""

from __future__ import annotations

from collections.abc import Mapping

from admissions.web.words.en import EN
from admissions.web.words.vi import VI

SENTENCES: Mapping[str, Mapping[str, str]] = {"en": EN, "vi": VI}
NAMES = {"en": "English", "vi": "Tiếng Việt"}


def say(language: str, key: str, /, *values: object, **named: object) -> str:
    """A sentence that is missing is a mistake of ours, and is not hidden."""
    return SENTENCES.get(language, EN)[key].format(*values, **named)
