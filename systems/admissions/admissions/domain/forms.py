"""The three steps of an application: what each needs, and what is wrong with what was typed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

STATEMENT_LEAST, STATEMENT_MOST = 10, 5_000  # characters
FILES_MOST, FILE_MOST = 5, 5_000_000  # bytes of each
TYPES = {"application/pdf": "PDF", "image/jpeg": "JPEG", "image/png": "PNG"}
NAME_MOST, PHONE_MOST, ADDRESS_MOST = 200, 40, 500
OLDEST, YOUNGEST = 120, 14  # years
STEPS = ("person", "statement", "documents")
KINDS = ("transcript", "identification", "other")  # of documents

_PHONE = re.compile(r"\+?[0-9 ()./-]{5,40}")


@dataclass(frozen=True)
class Wrong:
    """One field that cannot stay as it is. `key` names the sentence, which is written in each language."""

    field: str
    key: str
    values: tuple[object, ...] = ()


@dataclass(frozen=True)
class Answers:
    """What an applicant has typed so far. Names are in any script, and kept as they are."""

    name: str = ""
    birth: str = ""  # a date, as 2004-02-29
    phone: str = ""
    address: str = ""
    statement: str = ""
    declared: bool = False  # that all of it is true


FIELDS: Mapping[str, tuple[str, ...]] = {
    "person": ("name", "birth", "phone", "address"),
    "statement": ("statement",),
    "documents": ("declared",),
}


def is_name(text: str) -> bool:
    """In any script, with what joins its letters; and of one line."""
    is_line = not any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in text)
    return is_line and bool(text.strip()) and len(text) <= NAME_MOST


def wrong(answers: Answers, *, files: int, today: date, step: str | None = None) -> list[Wrong]:
    """All that stands between this and its submission, or of one step only."""
    found = [*_of_person(answers, today), *_of_statement(answers), *_of_documents(answers, files)]
    if step is None:
        return found
    names = {*FIELDS[step], *(("files",) if step == "documents" else ())}
    return [each for each in found if each.field in names]


def _of_person(answers: Answers, today: date) -> Iterator[Wrong]:
    if not answers.name.strip():
        yield Wrong("name", "name_missing")
    elif len(answers.name) > NAME_MOST:
        yield Wrong("name", "too_long", (len(answers.name), NAME_MOST))
    elif not is_name(answers.name):
        yield Wrong("name", "name_missing")
    yield from _of_birth(answers.birth, today)
    if answers.phone.strip() and not _PHONE.fullmatch(answers.phone.strip()):
        yield Wrong("phone", "phone_wrong", (answers.phone,))
    if not answers.address.strip():
        yield Wrong("address", "address_missing")
    elif len(answers.address) > ADDRESS_MOST:
        yield Wrong("address", "too_long", (len(answers.address), ADDRESS_MOST))


def _of_birth(text: str, today: date) -> Iterator[Wrong]:
    if not text.strip():
        yield Wrong("birth", "birth_missing")
        return
    try:
        birth = date.fromisoformat(text.strip())
    except ValueError:
        yield Wrong("birth", "birth_wrong", (text,))
        return
    years = today.year - birth.year - ((today.month, today.day) < (birth.month, birth.day))
    if not YOUNGEST <= years <= OLDEST:
        yield Wrong("birth", "birth_unlikely", (text, YOUNGEST))


def _of_statement(answers: Answers) -> Iterator[Wrong]:
    length = len(answers.statement.strip())
    if length < STATEMENT_LEAST:
        yield Wrong("statement", "statement_short", (length, STATEMENT_LEAST))
    elif length > STATEMENT_MOST:
        yield Wrong("statement", "too_long", (length, STATEMENT_MOST))


def _of_documents(answers: Answers, files: int) -> Iterator[Wrong]:
    if files == 0:
        yield Wrong("files", "files_missing")
    elif files > FILES_MOST:
        yield Wrong("files", "files_many", (files, FILES_MOST))
    if not answers.declared:
        yield Wrong("declared", "declared_missing")
