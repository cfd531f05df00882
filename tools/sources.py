"""Python files as the checks see them: found below a folder, parsed, and named by path from the root."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Source:
    path: str  # from the root, with slashes
    tree: ast.Module

    @property
    def module(self) -> str:
        """The dotted name that an import would use."""
        parts = list(Path(self.path.removeprefix("src/")).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        """What relative imports start from."""
        return self.module if self.path.endswith("/__init__.py") else self.module.rpartition(".")[0]


@dataclass(frozen=True, order=True)
class Problem:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def read(folder: str, root: Path = ROOT) -> Iterator[Source]:
    """Every Python file below the folder; one that does not exist yet is empty."""
    for path in sorted((root / folder).rglob("*.py")):
        name = path.relative_to(root)
        if not any(part.startswith(".") or part == "__pycache__" for part in name.parts):
            yield Source(name.as_posix(), ast.parse(path.read_text(encoding="utf-8"), str(name)))


def parse(path: str, text: str) -> Source:
    """A source that stands in no file."""
    return Source(path, ast.parse(text, path))


def imported(source: Source) -> Iterator[tuple[int, str, str | None, str | None]]:
    """(line, module, name, alias) for each import, wherever it stands; `import module` has no name."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Import(names=names):
                for each in names:
                    yield node.lineno, each.name, None, each.asname
            case ast.ImportFrom(names=names):
                for each in names:
                    yield node.lineno, _absolute(source, node), each.name, each.asname
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str() as module), *_],
            ):
                yield node.lineno, module, None, None


def _absolute(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = source.package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def report(problems: Iterable[Problem], what: str) -> int:
    """Print what was found; the exit code of a check."""
    found = sorted(set(problems))
    for problem in found:
        print(problem)
    print(f"{what}: {f'{len(found)} problems' if found else 'all well'}")
    return 1 if found else 0
