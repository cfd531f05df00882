"""Pictures drawn by code for seeded artists: seas, dunes, leaves, portraits, cities, circles. The same seed is the same picture."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable

from PIL import Image, ImageDraw

_FINER = 2  # drawn larger and made smaller, so that edges are smooth
_Draw = Callable[["_Sheet"], None]
_SCHEMES = (
    ("#bfe3e6", "#eaf6f4", "#2b6277", "#173443", "#f6e7c8"),
    ("#fbe3a8", "#f0a957", "#c65f3c", "#4c2233", "#fff4d6"),
    ("#f8b26a", "#f4845f", "#c94a5f", "#4a2a52", "#ffe0b0"),
    ("#d6d1f0", "#9d90cf", "#5b4b94", "#221c4a", "#f1eefc"),
    ("#c7e0b0", "#7fb069", "#3f7d54", "#1d3b34", "#f4f7e1"),
    ("#f1cdd8", "#cf8fab", "#8a5a83", "#41294f", "#fdf0f0"),
    ("#24305c", "#3c4f86", "#101736", "#0b0f26", "#f3d98b"),
    ("#e7dccb", "#c9a97f", "#8a6a50", "#3c2d2a", "#fbf5ea"),
)


class _Sheet:
    """A canvas whose places are parts of its size, from 0 to 1."""

    def __init__(self, width: int, height: int, seed: str) -> None:
        self.width, self.height = width * _FINER, height * _FINER
        self.chance = random.Random(seed)
        self.sky, self.light, self.middle, self.dark, self.glow = self.chance.choice(_SCHEMES)
        self.image = Image.new("RGB", (self.width, self.height), self.sky)
        self._draw = ImageDraw.Draw(self.image)

    def fade(self, above: str, below: str, until: float = 1.0) -> None:
        rows = round(self.height * until)
        first, last = _rgb(above), _rgb(below)
        for row in range(rows):
            part = row / max(1, rows - 1)
            colour = tuple(round(a + (b - a) * part) for a, b in zip(first, last, strict=True))
            self._draw.line([(0, row), (self.width, row)], fill=colour)

    def circle(self, x: float, y: float, radius: float, colour: str, *, line: float = 0) -> None:
        size = radius * min(self.width, self.height)
        box = (x * self.width - size, y * self.height - size, x * self.width + size, y * self.height + size)
        if line:
            self._draw.ellipse(box, outline=colour, width=round(line * self.width))
        else:
            self._draw.ellipse(box, fill=colour)

    def shape(self, points: list[tuple[float, float]], colour: str) -> None:
        self._draw.polygon([(x * self.width, y * self.height) for x, y in points], fill=colour)

    def box(self, left: float, top: float, right: float, bottom: float, colour: str) -> None:
        size = (left * self.width, top * self.height, right * self.width, bottom * self.height)
        self._draw.rectangle(size, fill=colour)

    def stroke(self, points: list[tuple[float, float]], colour: str, thick: float) -> None:
        places = [(x * self.width, y * self.height) for x, y in points]
        self._draw.line(places, fill=colour, width=max(1, round(thick * self.width)), joint="curve")


def _sea(sheet: _Sheet) -> None:
    chance, line = sheet.chance, sheet.chance.uniform(0.58, 0.7)
    sheet.fade(sheet.sky, sheet.light, line)
    sun = chance.uniform(0.3, 0.7)
    sheet.circle(sun, line - 0.02, chance.uniform(0.14, 0.22), sheet.glow)
    sheet.box(0, line, 1, 1, sheet.middle)
    for number in range(6):
        half, y = 0.07 - 0.008 * number, line + 0.04 + 0.05 * number
        middle = sun + 0.015 * (number % 3)
        sheet.box(middle - half, y, middle + half, y + 0.012, sheet.glow)
    foot = chance.uniform(0.0, 0.3)
    sheet.shape(
        [(foot, 1), (foot + 0.26, line + 0.04), (foot + 0.36, line + 0.12), (foot + 0.48, line + 0.06), (foot + 0.75, 1)],
        sheet.dark,
    )  # fmt: skip


def _dunes(sheet: _Sheet) -> None:
    sheet.fade(sheet.glow, sheet.sky)
    sheet.circle(sheet.chance.uniform(0.3, 0.75), 0.33, 0.15, "#fffaf0")
    for number, colour in enumerate((sheet.light, sheet.middle, sheet.dark)):
        base, wave = 0.5 + 0.17 * number, sheet.chance.uniform(2.0, 5.0)
        shift = sheet.chance.uniform(0, 6)
        ridge = [
            (x / 60, base + 0.05 * math.sin(shift + wave * x / 60) + 0.02 * math.sin(3 * wave * x / 60))
            for x in range(61)
        ]
        sheet.shape([(0, 1), *ridge, (1, 1)], colour)


def _leaves(sheet: _Sheet) -> None:
    sheet.fade(sheet.sky, sheet.light)
    for number in range(9):
        x, top = 0.02 + number * 0.12, sheet.chance.uniform(0.22, 0.5)
        bow, colour = 0.085, sheet.chance.choice((sheet.middle, sheet.dark, sheet.middle))
        sides = [(part / 20, bow * math.sin(math.pi * (part / 20) ** 0.8)) for part in range(21)]
        left = [(x - width, 1 - part * (1 - top)) for part, width in sides]
        right = [(x + width, 1 - part * (1 - top)) for part, width in reversed(sides)]
        sheet.shape([*left, *right], colour)
        sheet.stroke([(x, 1), (x + 0.012, top + 0.12)], sheet.glow, 0.006)


def _portrait(sheet: _Sheet) -> None:
    sheet.fade(sheet.sky, sheet.light)
    sheet.circle(0.5, 0.42, 0.36, sheet.glow)
    sheet.shape([(0.14, 1), (0.2, 0.84), (0.38, 0.74), (0.62, 0.74), (0.8, 0.84), (0.86, 1)], sheet.dark)
    sheet.box(0.44, 0.58, 0.56, 0.77, sheet.light)
    sheet.circle(0.5, 0.47, 0.17, sheet.light)
    hair = [
        (0.5 + 0.19 * math.cos(turn / 12 * math.pi), 0.44 - 0.2 * math.sin(turn / 12 * math.pi))
        for turn in range(13)
    ]
    sheet.shape([(0.7, 0.56), *hair, (0.3, 0.56), (0.35, 0.42), (0.6, 0.36)], sheet.dark)
    sheet.shape([(0.2, 1), (0.5, 0.8), (0.58, 0.84), (0.32, 1)], sheet.middle)


def _city(sheet: _Sheet) -> None:
    sheet.fade(sheet.sky, sheet.light)
    sheet.circle(sheet.chance.uniform(0.2, 0.8), 0.22, 0.09, sheet.glow)
    x = 0.0
    while x < 1:
        wide, top = sheet.chance.uniform(0.07, 0.14), sheet.chance.uniform(0.35, 0.68)
        colour = sheet.chance.choice((sheet.middle, sheet.dark))
        sheet.box(x, top, x + wide, 1, colour)
        for row in range(8):
            for column in range(3):
                if sheet.chance.random() < 0.45 and top + 0.04 + row * 0.06 < 0.94:
                    left, above = x + 0.015 + column * 0.028, top + 0.03 + row * 0.06
                    if left + 0.014 < x + wide:
                        sheet.box(left, above, left + 0.014, above + 0.026, sheet.glow)
        x += wide + 0.004


def _circles(sheet: _Sheet) -> None:
    sheet.fade(sheet.sky, sheet.light)
    for number in range(11):
        colour = (sheet.middle, sheet.dark, sheet.glow, sheet.light)[number % 4]
        x, y = sheet.chance.uniform(0, 1), sheet.chance.uniform(0, 1)
        radius = sheet.chance.uniform(0.06, 0.24)
        sheet.circle(x, y, radius, colour, line=0.008 if number % 3 == 2 else 0)


_KINDS: tuple[_Draw, ...] = (_sea, _dunes, _leaves, _portrait, _city, _circles)


def draw(seed: str, kind: int, *, width: int = 960, height: int = 960) -> Image.Image:
    """A picture; `kind` counts on through the six."""
    sheet = _Sheet(width, height, seed)
    _KINDS[kind % len(_KINDS)](sheet)
    return sheet.image.resize((width, height), Image.Resampling.LANCZOS)


def saved(image: Image.Image, kind: str) -> bytes:
    """As the bytes of a file: PNG, or JPEG for previews."""
    out = io.BytesIO()
    image.save(out, kind, **({"quality": 86} if kind == "JPEG" else {"optimize": False}))
    return out.getvalue()


def preview(image: Image.Image, side: int = 640) -> bytes:
    small = image.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    return saved(small, "JPEG")


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
