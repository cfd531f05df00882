"""Whatever the desk refuses with has a sentence in each language, which takes the values that come with it."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter

import admissions
import pytest
from admissions.desk.refusals import Changed, Forbidden, NotHere, TooSoon
from admissions.web.words import SENTENCES, say

ROOT = Path(admissions.__file__).parent
KINDS = {"Refusal": 0, "TooLate": 0, "Closed": 0, "NotLoggedIn": 0, "Wrong": 1}  # where their key stands


def told():
    """Keys with the number of values that come with them, as the sources of desk, domain and API say."""
    for folder in ("desk", "domain", "web/api"):
        for file in sorted((ROOT / folder).glob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.Call(func=ast.Name(id=name), args=args) if (
                        name in KINDS and len(args) > KINDS[name]
                    ):
                        yield from _keys(name, args, f"{file.name}:{node.lineno}")


def _keys(name, args, place):
    place_of_key = KINDS[name]
    if name == "Wrong":
        values = args[2] if len(args) > 2 else ast.Tuple(elts=[])
        number = len(values.elts) if isinstance(values, ast.Tuple) else 9
    else:
        number = len(args) - 1
    for node in ast.walk(args[place_of_key]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "_" in node.value:
            yield node.value, number, place


FOUND = sorted(set(told()))


def test_all_are_found():
    assert len(FOUND) > 40
    assert {"refund_too_much", "one_for_each_term", "login_unconfirmed", "payment_under_way"} <= {
        each[0] for each in FOUND
    }


@pytest.mark.parametrize("language", SENTENCES)
def test_each_has_a_sentence_that_takes_its_values(language):
    wrong = []
    for key, number, place in FOUND:
        sentence = SENTENCES[language].get(key)
        if sentence is None:
            wrong.append((place, key, "has no sentence"))
            continue
        wanted = [int(name) for _, name, _, _ in Formatter().parse(sentence) if name is not None]
        if wanted and max(wanted) >= number:
            wrong.append((place, key, f"has {number} values, and its sentence wants more"))
    assert wrong == []


@pytest.mark.parametrize("language", SENTENCES)
def test_those_that_bring_their_own(language):
    for refusal in (Changed(7), NotHere(), Forbidden(), TooSoon("too_often", 5.0)):
        assert say(language, refusal.key, *refusal.values)


def test_both_languages_have_the_same_sentences():
    assert set(SENTENCES["en"]) == set(SENTENCES["vi"])
