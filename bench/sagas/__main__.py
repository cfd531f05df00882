"""Measure sagas beside DBOS, and 100,000 that sleep: python -m bench.sagas [--tiny] [--measure M] [--results FOLDER]."""

from __future__ import annotations

import sys
from typing import Any

from bench import chapter
from bench.musts import saga_musts
from bench.sagas.figures import answers
from bench.sagas.systems import FEW, MANY, MEASURES
from bench.systems import System


def _options(_: str, system: System, tiny: bool) -> dict[str, Any]:
    return {
        "seconds": 0.5 if tiny else 2.0,
        "processes": 1 if system.store == "sqlite" else 2,
        "sleepers": (FEW if tiny else MANY)[system.name],
        "dawn": 3.0 if tiny else 30.0,
    }


SAGAS = chapter.Chapter(
    name="sagas",
    measures=MEASURES,
    once=frozenset({"sleeping"}),
    limit=900.0,
    options=_options,
    answers=answers,
    musts=saga_musts,
)

if __name__ == "__main__":
    sys.exit(chapter.main(SAGAS))
