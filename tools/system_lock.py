"""`python -m tools.system_lock publisher`: what a system needs when it runs, with the versions and hashes of requirements/dev.txt."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
BUILDS = Requirement("hatchling")  # an image builds our own packages without asking an index
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==")


def main(arguments: list[str]) -> int:
    for name in arguments:
        place(name).write_text(locked(name))
    return 0


def place(name: str) -> Path:
    return ROOT / "systems" / name / "deploy" / "requirements.txt"


def locked(name: str) -> str:
    pins = _pins()
    needed = {each for requirement in (BUILDS, *_declared(name)) for each in _closure(requirement)}
    missing = sorted(needed - pins.keys())
    if missing:
        raise SystemExit(
            f"requirements/dev.txt has no {', '.join(missing)}: add it to the group dev, and `make lock`."
        )
    head = f"# Made by `make lock` from requirements/dev.txt: what systems/{name} needs when it runs.\n"
    return head + "".join(pins[each] for each in sorted(needed))


def _pins() -> dict[str, str]:
    """Each pin of the whole lock, with its hashes, by its name."""
    found: dict[str, str] = {}
    name = ""
    for line in (ROOT / "requirements/dev.txt").read_text().splitlines(keepends=True):
        if (pin := _PIN.match(line)) is not None:
            name = canonicalize_name(pin[1])
            found[name] = line
        elif name and line.startswith(" "):
            found[name] += line
    return found


def _declared(name: str) -> Iterator[Requirement]:
    """Of the system, and of Holdfast with the extras that it asks for."""
    ours = _project(ROOT / "pyproject.toml")
    for text in _project(ROOT / "systems" / name / "pyproject.toml")["dependencies"]:
        requirement = Requirement(text)
        if requirement.name != "holdfast":
            yield requirement
            continue
        wanted = [*ours["dependencies"]]
        for extra in sorted(requirement.extras):
            wanted += ours["optional-dependencies"][extra]
        yield from map(Requirement, wanted)


def _project(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())["project"]  # type: ignore[no-any-return]


def _closure(requirement: Requirement, seen: set[tuple[str, str]] | None = None) -> Iterator[str]:
    """Its name, and those of all that it needs, as they are installed here."""
    seen = set() if seen is None else seen
    name = canonicalize_name(requirement.name)
    for extra in ("", *sorted(requirement.extras)):
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        yield name
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            raise SystemExit(f"{name} is not installed: run `make check` first.") from None
        for text in needs:
            inner = Requirement(text)
            if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                yield from _closure(inner, seen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
