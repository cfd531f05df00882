"""Prove a system whole: `python -m tools.proof publisher --store postgres`. Real processes, kills and freezes, counted at the end.

What a system does is in systems/NAME/tests/proof/NAME_proof.py: `async def prove(place) -> Findings`; with --bench in NAME_bench.py. The table and the last line are
printed; the exit code is 1 when anything is lost, done twice, stuck, or late. All is on loopback, and what it starts it ends.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.proving.figures import Findings
from tools.proving.place import STORES, Place, database, plain_environment

_ROOT = Path(__file__).parents[1]
_SYSTEMS = _ROOT / "systems"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has told us to ignore the first
        signal.signal(number, signal.default_int_handler)
    began, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix=f"{options.system}-proof-"))
    try:
        with database(options.store, folder) as url:
            place = Place(options.store, folder, url, options.small, random.Random(options.seed))
            findings = asyncio.run(_prove(options.system, options.what, place))
    except KeyboardInterrupt:
        print("Interrupted. All processes have been ended.")
        return 130
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    findings.line["seconds"] = round(time.monotonic() - began)
    print(f"\n{findings.shown()}\n")
    for each in findings.wrong[:40]:
        print(f"WRONG: {each}")
    print(f"{options.system} on {options.store}, {findings.last_line()}")
    return 1 if findings.wrong else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    known = sorted(each.parents[2].name for each in _SYSTEMS.glob("*/tests/proof/*_proof.py"))
    parser = argparse.ArgumentParser(prog="python -m tools.proof", description=__doc__)
    parser.add_argument("system", choices=known)
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument(
        "--bench",
        dest="what",
        action="store_const",
        const="bench",
        default="proof",
        help="measure it instead",
    )
    parser.add_argument("--small", action="store_true", help="as in the tests: less than a minute")
    parser.add_argument("--seed", type=int, default=1, help="for the moments of chance; processes add theirs")
    parser.add_argument("--keep", action="store_true", help="leave the folder with logs and database")
    return parser.parse_args(arguments)


async def _prove(system: str, what: str, place: Place) -> Findings:
    """The system's program reads its settings when it is imported, so its proof is imported here."""
    environment = plain_environment()
    os.environ.clear()
    os.environ.update(environment)
    own = _SYSTEMS / system
    sys.path[:0] = [str(own / "tests" / "proof"), str(own / "tests"), str(own)]
    async with place.wired():
        findings: Findings = await importlib.import_module(f"{system}_{what}").prove(place)
    return findings


if __name__ == "__main__":
    sys.exit(main())
