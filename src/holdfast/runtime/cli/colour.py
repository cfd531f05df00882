"""Colours on a terminal, for what a person should see first. NO_COLOR switches them off, FORCE_COLOR on; pipes have none."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TextIO

RED, YELLOW = "31", "33"
# By the first word of a cell.
STATES: Mapping[str, str] = {
    "dead": RED,
    "dead,": RED,
    "unknown": RED,
    "needs_operator": RED,
    "parked": RED,
    "draining": YELLOW,
}
HELD: Mapping[str, str] = {"held:": YELLOW}
LEVELS: Mapping[str, str] = {"BAD": RED, "WARN": YELLOW}


def is_wanted(stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> bool:
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return environment.get("TERM") != "dumb" and (stream or sys.stdout).isatty()


def painted(text: str, colours: Mapping[str, str]) -> str:
    """The text in the colour of its first word, if that has one."""
    word = text.split(maxsplit=1)
    colour = colours.get(word[0]) if word else None
    return text if colour is None else f"\x1b[{colour}m{text}\x1b[0m"
