"""Any value can be shown: shortly, in one line, at once."""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime

import pytest

from holdfast.kernel.show import show, storable


@dataclasses.dataclass
class Pair:
    left: object = None
    right: object = None

    def __repr__(self):
        return f"{self.left!r}{self.right!r}"


class Rude:
    def __repr__(self):
        raise RuntimeError("no")


def wide() -> Pair:
    """A value whose own repr would have a billion parts."""
    pair = Pair()
    for _ in range(30):
        pair = Pair(pair, pair)
    return pair


SHOWN = [
    ("mail", "'mail'"),
    (None, "None"),
    (float("nan"), "nan"),
    (2**63, "9223372036854775808"),
    (10**5000, "<integer of 16610 bits>"),
    ([1, [2, [3, [4]]]], "[1, [2, [3, [...]]]]"),
    ({"a": 1}, "{'a': 1}"),
    (datetime(2026, 1, 2, tzinfo=UTC), "datetime.datetime(2026, 1, 2, 0, 0, tzinfo=datetime.timezone.utc)"),
    (Rude(), "<Rude>"),
    ([Rude()], "[<Rude>]"),
    (Pair(1, 2), "<Pair>"),
    (object(), "<object>"),
    ("a\nb\x1b", r"'a\nb\x1b'"),
]
ENDLESS = {
    "text": "x" * 10**7,
    "bytes": b"x" * 10**7,
    "lists": [["x" * 10**6] * 100] * 100,
    "keys": dict.fromkeys(range(10**6)),
    "parts": wide(),
    "parts in a list": [wide()],
}


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_values(value, text):
    assert show(value) == text


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_values_are_short_and_quick(name):
    begun = time.perf_counter()
    assert len(show(ENDLESS[name])) <= 130
    assert time.perf_counter() - begun < 0.5


def test_text_for_the_stores():
    assert storable("plain é") == "plain é"
    assert storable("a\0b\ud800") == r"a\u0000b\ud800"
    assert len(storable("x" * 10**6)) < 8_100
