"""The sentences of pages and refusals, by language. Values are put in as text, and never as a template."""

from __future__ import annotations

from collections.abc import Mapping

from admissions.web.words.desk_en import DESK_EN
from admissions.web.words.desk_vi import DESK_VI
from admissions.web.words.en import EN
from admissions.web.words.frame_en import FRAME_EN
from admissions.web.words.frame_vi import FRAME_VI
from admissions.web.words.vi import VI

_ENGLISH: Mapping[str, str] = {**FRAME_EN, **EN, **DESK_EN}
SENTENCES: Mapping[str, Mapping[str, str]] = {"en": _ENGLISH, "vi": {**FRAME_VI, **VI, **DESK_VI}}
NAMES = {"en": "English", "vi": "Tiếng Việt"}


def say(language: str, key: str, /, *values: object, **named: object) -> str:
    """A sentence that is missing is a mistake of ours, and is not hidden."""
    return SENTENCES.get(language, _ENGLISH)[key].format(*values, **named)
