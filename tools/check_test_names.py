"""Check that each test file has a name of its own: pytest cannot collect two of one name in different folders."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tools.sources import Problem, read, report

FOLDERS = ("tests", "systems")


def check(paths: Iterable[str]) -> Iterator[Problem]:
    by_name = defaultdict[str, list[str]](list)
    for path in paths:
        if (name := PurePosixPath(path).name).startswith("test_"):
            by_name[name].append(path)
    for first, *others in by_name.values():
        for path in others:
            yield Problem(
                path, 1, f"has the name of {first}, and pytest can collect only one; rename one of them"
            )


def main() -> int:
    return report(check(source.path for folder in FOLDERS for source in read(folder)), "test names")


if __name__ == "__main__":
    sys.exit(main())
