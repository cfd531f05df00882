"""Check what stands on Holdfast: systems use its public names, their domains the standard library, and simulators neither."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tools.sources import Problem, Source, imported, read, report

# Each has one list of what programs may import. A name that a system lacks is to be added there.
PUBLIC = frozenset(
    f"holdfast{part}"
    for part in (
        "",
        ".errors",
        ".guards",
        ".testing",
        ".web",
        ".web.pages",
        ".observe",
        ".mail",
        ".vault",
        ".blobs",
        ".settings",
        ".sqlalchemy.migrations",
        ".vault.columns",
    )
)


def check(source: Source) -> Iterator[Problem]:
    parts = source.path.split("/")
    for line, module, name, _ in imported(source):
        found = simulator(module) if parts[0] == "simulators" else system(parts, module, name)
        if found is not None:
            yield Problem(source.path, line, found)


def simulator(module: str) -> str | None:
    if module.split(".", maxsplit=1)[0] in ("holdfast", "systems"):
        return f"a simulator imports {module}: a bug that both share would hide"
    return None


def system(parts: list[str], module: str, name: str | None) -> str | None:
    """`parts` are those of a path below systems/, such as systems/publisher/publisher/work/publishing.py."""
    own, is_test = parts[1], "tests" in parts[2:]
    top = module.split(".", maxsplit=1)[0]
    if top == "simulators" and not is_test:
        return "only tests and make start simulators; the program is pointed at them by a setting"
    if top == "systems" or (top != own and top in OTHERS):
        return f"{own} imports {module}: systems share no code except through holdfast"
    if "domain" in parts[2:-1] and not is_test:
        return (
            None
            if is_domain(top, own, module)
            else f"a domain imports {module}; the standard library is all it needs"
        )
    if top == "holdfast" and module not in PUBLIC and f"{module}.{name}" not in PUBLIC:
        return f"{module} is no public part of holdfast; make {name or 'what is needed'} public there"
    return None


OTHERS = frozenset({"publisher", "admissions", "battlescope"})


def is_domain(top: str, own: str, module: str) -> bool:
    return top in sys.stdlib_module_names or module.startswith(f"{own}.domain")


def main() -> int:
    folders = ("simulators", "systems")
    return report(
        (found for folder in folders for source in read(folder) for found in check(source)), "systems"
    )


if __name__ == "__main__":
    sys.exit(main())
