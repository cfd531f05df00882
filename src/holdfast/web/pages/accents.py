"""The one colour of a product: for its main action, links, focus and a single data series. Contrast is checked at start."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show

_COLOUR = re.compile(r"#[0-9a-f]{6}", re.IGNORECASE)
_TEXT = 4.5  # contrast that WCAG 2.2 asks of text
_SURFACES = ("#ffffff", "#15181e")
_ON_ACCENT = ("#ffffff", "#0e1014")


class Accent(NamedTuple):
    """A colour and its soft background, in light and in dark: `Accent("#214a86", "#e8eff9", "#94b8f2", "#172640")`."""

    light: str
    light_soft: str
    dark: str
    dark_soft: str


ACCENTS = {
    "indigo": Accent("#4350c4", "#eceefb", "#9aa5ff", "#20243f"),
    "magenta": Accent("#a12c6c", "#faeaf3", "#f08fc0", "#371a2b"),
    "navy": Accent("#214a86", "#e8eff9", "#94b8f2", "#172640"),
    "teal": Accent("#0b6a7f", "#e3f2f5", "#58c4dc", "#10292f"),
}


def accent_of(given: str | Accent) -> Accent:
    """By name, or checked: text in this colour, and on it, must be readable."""
    if isinstance(given, str):
        if given not in ACCENTS:
            raise UsageError(
                f"accent={show(given)} is none of {', '.join(ACCENTS)}; give an Accent(…) for another colour."
            )
        return ACCENTS[given]
    for colour in given:
        if not _COLOUR.fullmatch(colour):
            raise UsageError(f"{show(colour)} in accent is no colour; write it as #214a86.")
    for theme, colour, soft, surface, on in zip(
        ("light", "dark"), given[::2], given[1::2], _SURFACES, _ON_ACCENT, strict=True
    ):
        for ground in (surface, soft, on):
            if contrast(colour, ground) < _TEXT:
                raise UsageError(
                    f"The {theme} accent {colour} has a contrast of {contrast(colour, ground):.1f} to {ground}; "
                    f"it needs {_TEXT}, so that it can be read."
                )
    return given


def style_of(accent: Accent) -> bytes:
    """The style sheet that sets it."""
    return (
        f":root {{ --accent: light-dark({accent.light}, {accent.dark}); "
        f"--accent-soft: light-dark({accent.light_soft}, {accent.dark_soft}); }}\n"
    ).encode()


def contrast(one: str, other: str) -> float:
    """By WCAG 2.2: from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
