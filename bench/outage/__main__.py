"""Run it and draw it: python -m bench.outage. Takes 40 seconds; writes bench/results/outage.json and docs/guards.png."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from bench import environments, step
from bench.outage.provider import LENGTH, Provider

ROOT = Path(__file__).parents[2]
RESULTS, PICTURE = ROOT / "bench" / "results" / "outage.json", ROOT / "docs" / "guards.png"
NODES = 3


async def run(console: Console) -> dict[str, Any]:
    provider = Provider()
    with tempfile.TemporaryDirectory() as folder:
        async with provider.open():
            nodes = [await _node(folder, number, provider.port) for number in range(NODES)]
            with Progress(console=console, transient=True) as progress:
                shown = progress.add_task(f"{NODES} processes, one guard", total=LENGTH)
                while provider.time() < LENGTH:
                    await asyncio.sleep(0.2)
                    progress.update(shown, completed=provider.time())
            for node in nodes:
                await node.wait()
        seen = [json.loads((Path(folder) / f"{number}.json").read_text()) for number in range(NODES)]
    return {"calls": provider.calls, "nodes": seen}


def keep(found: dict[str, Any]) -> None:
    """Beside what the other part has found."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(known | found) + "\n")


async def _node(folder: str, number: int, port: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.outage.node", folder, str(number), str(port), repr(time.time()))
    )


def main() -> None:
    console = Console()
    found = asyncio.run(run(console))
    keep(found)
    interpreter = environments.make("picture")
    step.run_quietly([str(interpreter), "-m", "bench.outage.picture", str(RESULTS), str(PICTURE)])
    console.print(f"Written: {RESULTS.relative_to(ROOT)}, {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
