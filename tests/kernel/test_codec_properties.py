"""For every value: the exact same value comes back, or it was refused."""

from __future__ import annotations

import json
import math

import pytest
from alphabet import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.codec import decode, decode_stored, encode
from holdfast.kernel.errors import PayloadError

numbers = (
    st.integers()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.sampled_from([-0.0, 2**53 + 1, 5e-324, 1e308])
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda parts: st.lists(parts) | st.dictionaries(texts, parts),
    max_leaves=30,
)


def same(left, right) -> bool:
    """Equal with types, signs of zero and the order of keys."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return left == right


def fits(value) -> bool:
    """Whether JSON can hold this value exactly, told independently of the codec."""
    if isinstance(value, str):
        return not any(0xD800 <= ord(character) <= 0xDFFF for character in value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if isinstance(value, list):
        return all(map(fits, value))
    if isinstance(value, dict):
        return all(fits(key) and fits(item) for key, item in value.items())
    return True


@given(values)
@settings(max_examples=120, deadline=None)
def test_the_same_value_comes_back_or_it_was_refused(value):
    try:
        text = encode(value)
    except PayloadError:
        assert not fits(value)
        return
    assert fits(value)
    assert same(decode(text), value)
    assert same(decode_stored(text), value)
    assert same(decode(text.encode()), value)
    assert encode(decode(text)) == text
    size = len(text.encode())
    assert encode(value, limit=size) == text
    with pytest.raises(PayloadError):
        encode(value, limit=size - 1)


@given(values)
@settings(max_examples=60, deadline=None)
def test_other_writers_are_read_alike(value):
    """What the standard library writes, with all its escapes, is read as the same value, or refused when it is not JSON."""
    text = json.dumps(value)
    try:
        found = decode(text)
    except PayloadError:
        # A low half after a high half becomes one character on the way, so look at what the text says.
        assert not fits(json.loads(text))
        return
    assert same(found, json.loads(text))


@given(st.binary() | texts | st.text(st.sampled_from('[]{}",:\\u0123456789aDdeE.-+ntrf ')))
@settings(max_examples=400, deadline=None)
def test_no_text_raises_anything_but_a_payload_error(text):
    try:
        value = decode(text)
    except PayloadError:
        return
    assert same(decode(encode(value)), value)
