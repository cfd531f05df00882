"""Check import direction: a layer imports layers with a lower number, never a sibling and never upwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tools.sources import Problem, Source, imported, read, report

LAYERS = {
    "kernel": 1,
    "errors": 2,  # for programs; the engine takes them from the kernel
    "settings": 3,  # for programs
    "guards": 2,
    "store": 2,
    "transport": 2,
    "vault": 2,
    "mail": 2,
    "blobs": 2,
    "fleet": 3,
    "sqlalchemy": 3,
    "jobs": 4,
    "events": 5,
    "sagas": 6,
    "views": 6,
    "web": 7,
    "observe": 7,
    "dashboard": 8,
    "runtime": 9,
    "testing": 10,
}
BACKENDS = ("sqlite", "postgres")  # implementations inside the store: its own files stand below them


def check(source: Source) -> Iterator[Problem]:
    layer = layer_of(source.module)
    if layer is None:
        return  # holdfast/__init__.py and __main__.py stand above all
    if layer not in LAYERS:
        yield Problem(
            source.path, 1, f"{layer} is no layer: add it to LAYERS in tools/check_layers.py with its number"
        )
        return
    for line, module, name, _ in imported(source):
        target = resolve(module, name)
        if target is not None and (reason := objection(source.module, layer, target)) is not None:
            yield Problem(source.path, line, reason)


def layer_of(module: str) -> str | None:
    """`jobs` for holdfast.jobs.cron; None for what stands above all layers."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else None


def resolve(module: str, name: str | None) -> str | None:
    """The dotted name that an import reaches; None when it is not ours."""
    if module != "holdfast" and not module.startswith("holdfast."):
        return None
    is_part = name in LAYERS if module == "holdfast" else name is not None
    return f"{module}.{name}" if is_part else module


def objection(here: str, layer: str, target: str) -> str | None:
    there = layer_of(target)
    if there is None:
        return f"{layer} ({LAYERS[layer]}) imports {target}, the public list, which stands above all layers"
    if there == layer:
        return store_objection(here, target) if layer == "store" else None
    if there not in LAYERS:
        return f"{there} is no layer: add it to LAYERS in tools/check_layers.py with its number"
    if LAYERS[there] == LAYERS[layer]:
        return f"{layer} ({LAYERS[layer]}) imports its sibling {target}; move what both need to a lower layer"
    if LAYERS[there] > LAYERS[layer]:
        return f"{layer} ({LAYERS[layer]}) imports {target} ({LAYERS[there]}), which is a higher layer"
    return None


def store_objection(here: str, target: str) -> str | None:
    mine, theirs = backend_of(here), backend_of(target)
    if theirs is None or theirs == mine:
        return None
    if mine is None:
        return f"the store's own files do not know their implementations, but this imports {target}"
    return f"{mine} imports {target}: the two implementations do not know each other"


def backend_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[2] in BACKENDS else None


def main() -> int:
    return report((found for source in read("src/holdfast") for found in check(source)), "layers")


if __name__ == "__main__":
    sys.exit(main())
