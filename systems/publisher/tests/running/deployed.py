"""The files of deploy/ as they are read: the image's steps, and the services with their settings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[4]
DEPLOY = ROOT / "systems/publisher/deploy"
_STEP = re.compile(r"^([A-Z]+) (.+)$")


def steps() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile with what follows it."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    found = [_STEP.match(line) for line in lines if line and not line.startswith("#")]
    assert all(found), "each instruction stands on one line"
    return [(each[1], each[2]) for each in found if each is not None]


def copies() -> list[tuple[list[str], str]]:
    """What is copied out of the project, and where to below the folder of the build."""
    words = [shlex.split(said) for name, said in steps() if name == "COPY" and "--from" not in said]
    return [(each[:-1], each[-1]) for each in words]


def runs() -> list[list[str]]:
    """The commands that build the image; `a && b` are two."""
    return [shlex.split(part) for name, said in steps() if name == "RUN" for part in said.split(" && ")]


def compose(given: dict[str, str]) -> dict[str, dict]:
    """The services, as they are with these variables."""

    def value(found: re.Match[str]) -> str:
        name, _, default = found[1].partition(":")
        if name not in given and default.startswith("?"):
            raise KeyError(name)
        return given.get(name, default.removeprefix("-"))

    def told(found):
        match found:
            case dict():
                return {name: told(each) for name, each in found.items()}
            case list():
                return [told(each) for each in found]
            case str():
                return re.sub(r"\$\{([^}]+)\}", value, found)
        return found

    return told(yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"])


def kubernetes() -> list[dict]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
