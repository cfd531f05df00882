"""Check the notes: what the source notes stands in `kernel/notes.py`, with the same fields, and nothing else stands there."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from string import Formatter

from holdfast.kernel.notes import NOTES, Entry
from tools.sources import Problem, Source, imported, read, report

LIST = "src/holdfast/kernel/notes.py"
# Where a name is not a constant at the call: which names it may be.
CHOSEN = {
    "src/holdfast/fleet/leading.py": (
        "relay.failed",
        "consumer.failed",
        "sagas.failed",
        "view.failed",
        "alerts.failed",
    ),
    "src/holdfast/guards/breaker.py": ("breaker.opened", "breaker.half_opened", "breaker.closed"),
}
NOTE = ("holdfast.kernel.telemetry", "note")
PATIENTLY = ("job", "error")  # of `patiently(…, what=name)`


@dataclass(frozen=True)
class Call:
    path: str
    line: int
    name: str
    fields: frozenset[str] | None  # None: they cannot be seen


def check(sources: Iterable[Source], notes: Mapping[str, Entry] = NOTES) -> Iterator[Problem]:
    made: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        for call in calls(source):
            made[call.name] |= call.fields or set()
            if (why := _objection(call, notes)) is not None:
                yield Problem(call.path, call.line, why)
    for name, entry in notes.items():
        yield from (Problem(LIST, 1, why) for why in _flaws(entry, made.get(name)))


def calls(source: Source) -> Iterator[Call]:
    known = {alias or name for _, module, name, alias in imported(source) if (module, name) == NOTE}
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=ast.Name(id=said), args=[first, *_], keywords=keywords) if said in known:
                fields = frozenset(each.arg for each in keywords if each.arg)
                whole = None if any(each.arg is None for each in keywords) else fields
                names = _constants(first) or CHOSEN.get(source.path) or _variable(first)
                yield from (Call(source.path, node.lineno, name, whole) for name in names)
            case ast.Call(func=ast.Name(id="patiently"), keywords=keywords):
                for each in keywords:
                    if each.arg == "what":
                        names = _constants(each.value)
                        yield from (
                            Call(source.path, node.lineno, name, frozenset(PATIENTLY)) for name in names
                        )


def _constants(node: ast.expr) -> tuple[str, ...]:
    match node:
        case ast.Constant(value=str() as name):
            return (name,)
        case ast.IfExp(body=body, orelse=other):
            return (*_constants(body), *_constants(other))
        case _:
            return ()


def _variable(node: ast.expr) -> tuple[str, ...]:
    """`what` is the name that `patiently` was given; all else must be seen."""
    return () if isinstance(node, ast.Name) and node.id == "what" else (f"<{ast.unparse(node)}>",)


def _objection(call: Call, notes: Mapping[str, Entry]) -> str | None:
    entry = notes.get(call.name)
    if entry is None:
        return f"the note {call.name} does not stand in {LIST}"
    if call.fields is None:
        return f"the fields of {call.name} cannot be seen: write them out"
    lacking = set(entry.fields) - call.fields
    strange = call.fields - {*entry.fields, *entry.optional}
    if lacking or strange:
        return f"{call.name} is noted with {_told(call.fields)}; its entry has {_told(entry.fields)}"
    return None


def _flaws(entry: Entry, made: set[str] | None) -> Iterator[str]:
    if made is None:
        yield f"{entry.name} is noted nowhere"
    elif unseen := set(entry.optional) - made:
        yield f"{entry.name} is never noted with {_told(unseen)}"
    spoken = {name for _, name, _, _ in Formatter().parse(entry.sentence) if name is not None}
    if strange := spoken - {*entry.fields, *entry.optional}:
        yield f"the sentence of {entry.name} speaks of {_told(strange)}, which it has not"


def _told(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no fields"


def main() -> int:
    return report(check(list(read("src/holdfast"))), "notes")


if __name__ == "__main__":
    sys.exit(main())
