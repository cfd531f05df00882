"""Names and numbers that every store takes alike, and refusals that fit on a screen."""

from __future__ import annotations

import enum
from datetime import timedelta
from decimal import Decimal

import pytest
from alphabet import texts
from hypothesis import given

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import HUNDRED_YEARS, check_int, check_name, check_seconds


class Queue(enum.StrEnum):
    MAIL = "mail"


@pytest.mark.parametrize("kind", ["queue", "task", "unique key"])
@pytest.mark.parametrize("name", ["mail", "mail.send", "user:42", "é", "📮", "two words", "x" * 200])
def test_good_names(kind, name):
    assert check_name(kind, name) == name


def test_an_enum_becomes_plain_text():
    assert type(check_name("queue", Queue.MAIL)) is str


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "empty"),
        (" mail", "begins or ends with a space"),
        ("mail\u00a0", "begins or ends with a space"),
        ("a\0b", "U+0000 at position 1"),
        ("a\nb", "U+000A"),
        ("a\x1b[31m", "U+001B"),
        ("a\x7f", "U+007F"),
        ("a\x85b", "U+0085"),
        ("a\u2028b", "U+2028"),
        ("a\ud800", "U+D800"),
        (None, "must be a string, not None"),
        (5, "must be a string, not 5"),
        (b"mail", "must be a string"),
    ],
)
def test_bad_names(name, word):
    with pytest.raises(UsageError) as caught:
        check_name("queue", name)
    assert word in str(caught.value)
    assert "queue" in str(caught.value)


def test_length_depends_on_the_kind():
    for kind, longest in (("queue", 200), ("task", 200), ("unique key", 500), ("subject", 600)):
        for longest_name in ("x" * longest, "é" * (longest // 2), "\U00020000" * (longest // 4)):
            assert check_name(kind, longest_name)
            with pytest.raises(UsageError, match=f"at most {longest} bytes"):
                check_name(kind, f"{longest_name}x")
        with pytest.raises(UsageError, match=f"at most {longest} bytes") as caught:
            check_name(kind, "x" * 10_000)
        assert "(10000 characters)" in str(caught.value)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [0, 0.0, 1, 2.5, HUNDRED_YEARS])
def test_good_seconds(value):
    found = check_seconds("delay", value)
    assert found == value
    assert type(found) is float


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -0.001,
        float("nan"),
        float("inf"),
        float("-inf"),
        HUNDRED_YEARS + 1,
        10**400,
        True,
        "5",
        None,
        Decimal(1),
        timedelta(1),
    ],
)
def test_bad_seconds(value):
    with pytest.raises(UsageError, match="delay must be") as caught:
        check_seconds("delay", value)
    assert len(str(caught.value)) < 200


def test_seconds_between_bounds():
    assert check_seconds("lease", 5, minimum=1, maximum=10) == 5.0
    with pytest.raises(UsageError, match=r"lease must be from 1 to 10 seconds, not 0\.5"):
        check_seconds("lease", 0.5, minimum=1, maximum=10)


def test_whole_numbers():
    assert check_int("priority", 3, 1, 9) == 3
    for bad in (0, 10, -(10**5000), True, 2.0, "3", None):
        with pytest.raises(UsageError, match="priority must be") as caught:
            check_int("priority", bad, 1, 9)
        assert len(str(caught.value)) < 200


@given(texts)
def test_a_name_that_passes_is_clean(name):
    try:
        check_name("queue", name)
    except UsageError as error:
        assert str(error).isprintable()  # the value is shown escaped, so no terminal is harmed
        return
    assert name.encode()
    assert name == name.strip()
    assert "\0" not in name
