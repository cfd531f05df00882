"""Portions: by number and by bytes, in order, and nothing lost."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.portions import portions


@given(st.lists(st.integers(0, 50)), st.integers(1, 10), st.integers(1, 60))
def test_portions_keep_to_number_and_bytes_and_lose_nothing(sizes, most, room):
    found = list(portions(sizes, int, most=most, room=room))
    assert [each for part in found for each in part] == sizes
    for part in found:
        assert 0 < len(part) <= most
        assert sum(part) <= room or len(part) == 1
    for part, following in pairwise(found):
        assert len(part) == most or sum(part) + following[0] > room, "it had room for one more"


def test_no_more_than_one_is_read_ahead():
    read = []

    def items():
        for number in range(10):
            read.append(number)
            yield number

    assert next(portions(items(), lambda _: 4, most=500, room=8)) == [0, 1]
    assert read == [0, 1, 2]
