"""The characters that matter to a codec. Hypothesis would first read all of Unicode, which takes seconds."""

from __future__ import annotations

from hypothesis import strategies as st

_EDGES = [
    0x2028,
    0x2029,
    0xD7FF,
    0xD800,
    0xDBFF,
    0xDC00,
    0xDFFF,
    0xE000,
    0xFEFF,
    0xFFFD,
    0xFFFF,
    0x10000,
    0x1F9ED,
    0x10FFFF,
]
# One and two bytes of UTF-8 with the controls, accents that combine, line ends, surrogates, four bytes.
CHARACTERS = [chr(number) for number in [*range(0x310), *_EDGES]]
texts = st.text(st.sampled_from(CHARACTERS))
