"""Keep the story in docs/sagas.md true: run the page's program in real worker processes, kill one, and tell what is recorded.

python -m tools.saga_story            # rewrites it
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

from holdfast import Holdfast
from holdfast.kernel.crashpoints import armed
from holdfast.kernel.ids import new_id
from holdfast.runtime.cli import main as holdfast
from holdfast.sagas.timeline import History
from holdfast.store.records import NewJob
from holdfast.store.saga_records import OVER, NewSaga
from tools.processes import Process, environment, worker_command
from tools.waiting import until

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "sagas.md"
BLOCK = re.compile(r"(?<=```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
PROGRAM = re.compile(r"(?<=```python\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
SAGA = "battle:7"
LEASE = 1.5
KILLED_AT = 2  # the call of a step after which the first worker is killed
PATIENCE = 60.0


def rendered(page: str) -> str:
    """The page with the story as it is told now."""
    [program, *_] = PROGRAM.findall(page)
    story = asyncio.run(_story(program))
    return BLOCK.sub(lambda _: story, page)


async def _story(program: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "battles.py").write_text(program)
        async with Holdfast(f"sqlite:///{folder / 'battles.db'}") as hf:
            job = NewJob(id=new_id(), task="saga:battle.create", args='{"name":"Jita"}')
            await hf.store.sagas.start([NewSaga(id=SAGA, name="battle.create", job=job)])
            await _run(hf, folder)
            found = await hf.sagas.history(SAGA)
        assert found is not None
        return _told(found, (folder / "calls").read_text().split())


async def _run(hf: Holdfast, folder: Path) -> None:
    first = _process(folder, [sys.executable, "-m", "tools.saga_story", "dying-worker"], "first")
    assert await first.ended(PATIENCE) == -signal.SIGKILL, first.log
    second = _process(folder, worker_command("battles:hf", lease=LEASE), "second")
    try:
        await until(lambda: _is_over(hf), PATIENCE)
    finally:
        second.destroy()


async def _is_over(hf: Holdfast) -> bool:
    record = await hf.sagas.get(SAGA)
    return record is not None and record.state in OVER


def _process(folder: Path, command: list[str], name: str) -> Process:
    return Process(command, folder, environment([str(ROOT), str(folder)]), folder / f"{name}.log")


def _told(found: History, calls: list[str]) -> str:
    lines = [f"{'WHAT':<9} {'NAME':<14} TOLD"]
    for entry in found.timeline:
        if entry.what == "undo" and not any("is killed" in line for line in lines):
            raise AssertionError("the first worker was not killed before the way back")
        lines.append(f"{entry.what:<9} {entry.name or '':<14} {entry.told or ''}".rstrip())
        if (entry.what, entry.name, entry.told) == ("step", "index", "begun"):
            lines.append(f"{'':<25}(the first worker is killed, after the call)")
    lines += ["", f"called: {', '.join(calls)}"]
    return "\n".join(lines) + "\n"


def _dying_worker() -> int:
    """A worker that is killed after a call of a step, before it can record it."""
    passed: list[str] = []

    def die(name: str) -> None:
        passed.append(name)
        if len(passed) == KILLED_AT:
            os.kill(os.getpid(), signal.SIGKILL)

    with armed("effect.called", die):
        return holdfast(["worker", "battles:hf", "--lease", str(LEASE)])


def main() -> int:
    if sys.argv[1:] == ["dying-worker"]:
        return _dying_worker()
    page = PAGE.read_text()
    new = rendered(page)
    if new != page:
        PAGE.write_text(new)
    print(f"{PAGE.name}: {'rewritten' if new != page else 'its story is true'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
