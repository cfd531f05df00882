"""Check that every Python file begins by saying its job."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from tools.sources import Problem, Source, read, report

FOLDERS = ["src", "tests", "tools", "bench", "chaos", "systems", "simulators"]


def check(source: Source) -> Iterator[Problem]:
    match source.tree.body:
        case [ast.Expr(value=ast.Constant(value=str() as text)), *_]:
            if not text.split("\n", 1)[0].strip():
                yield Problem(source.path, 1, "the docstring's first line is empty; say the file's job there")
        case _:
            yield Problem(source.path, 1, "the file does not begin with a docstring that says its job")


def main() -> int:
    return report(
        (found for folder in FOLDERS for source in read(folder) for found in check(source)), "docstrings"
    )


if __name__ == "__main__":
    sys.exit(main())
