"""The seam check finds clocks, chance, threads, processes and unsafe formats, however they are imported."""

from __future__ import annotations

import pytest

from tools.check_seams import CRASHPOINTS_FILE, check, check_crashpoints
from tools.sources import parse, read

BAD = [
    "import time",
    "import time as t",
    "from time import monotonic",
    "def f():\n    import time",
    "import importlib\nimportlib.import_module('time')",
    "from datetime import datetime\nx = datetime.now()",
    "from datetime import datetime as dt\nx = dt.utcnow()",
    "import datetime\nx = datetime.datetime.now(datetime.UTC)",
    "import datetime as d\nx = d.date.today()",
    "from datetime import datetime\ndefault = datetime.today",
    "import random",
    "from random import Random",
    "import secrets",
    "import os\nx = os.urandom(8)",
    "from os import urandom",
    "import uuid\nx = uuid.uuid4()",
    "from uuid import uuid1",
    "import asyncio\nasync def f():\n    await asyncio.sleep(1)",
    "from asyncio import sleep",
    "import asyncio\nasync def f():\n    await asyncio.to_thread(print)",
    "async def f(loop):\n    await loop.run_in_executor(None, print)",
    "import asyncio\nasync def f():\n    await asyncio.get_running_loop().run_in_executor(None, print)",
    "import threading",
    "from threading import Thread",
    "import queue",
    "from concurrent.futures import ThreadPoolExecutor",
    "from concurrent import futures",
    "import multiprocessing.pool",
    "import subprocess",
    "import os\nos.fork()",
    "import os\nos.execvp('x', [])",
    "import asyncio\nasync def f():\n    await asyncio.create_subprocess_exec('x')",
    "import asyncio\nasync def f():\n    async with asyncio.timeout(3):\n        pass",
    "import asyncio\nasync def f(x):\n    await asyncio.wait_for(x, 3)",
    "import asyncio\nasync def f(x):\n    asyncio.create_task(x)",
    "import asyncio\nasync def f(x):\n    asyncio.get_running_loop().create_task(x)",
    "import asyncio\nasync def f():\n    return asyncio.get_running_loop().time()",
    "def f(self):\n    return self._loop.time()",
    "def f(loop, x):\n    loop.call_later(3, x)",
    "import asyncio\nwait = asyncio.sleep\nasync def f():\n    await wait(1)",
    "import asyncio\na = asyncio\nasync def f():\n    await a.sleep(1)",
    "import asyncio\nasync def f():\n    lp = asyncio.get_running_loop()\n    return lp.time()",
    "import asyncio\nasync def f(x):\n    async with asyncio.TaskGroup() as group:\n        group.create_task(x)",
    "import asyncio\nasync def f(x):\n    await asyncio.wait([x], timeout=3)",
    "import asyncio\nasync def f():\n    await asyncio.tasks.sleep(3)",
    "import select",
    "import signal\nsignal.setitimer(signal.ITIMER_REAL, 1)",
    "from holdfast.kernel import reality\nx = reality.time.time()",
    "from asyncio import *",
    "from time import *",
    "from holdfast.kernel.reality import time",
    "from holdfast.kernel.spawn import asyncio\nasync def f():\n    await asyncio.sleep(1)",
]
UNSAFE = [
    "import pickle",
    "from marshal import loads",
    "import shelve",
    "x = eval('1')",
    "exec('x = 1')",
    "f = eval",
]
GOOD = [
    "import asyncio\nasync def f():\n    await asyncio.gather(asyncio.Queue().get())",
    "from holdfast.kernel.clock import timeout\nasync def f():\n    async with timeout(3):\n        pass",
    "def f(record):\n    return record.time()",
    "from datetime import datetime, time, timedelta\nx = datetime.fromtimestamp(0)\ny = time(1)",
    "import os\nx = os.environ, os.path.join('a', 'b'), os.getpid()",
    "from uuid import UUID",
    "time = 3\nx = time + 1\nrandom = lambda: 4\nx = random()",
    "from holdfast.kernel.clock import now, sleep\nfrom holdfast.kernel.randomness import random\nx = random()",
    "def evaluate(model):\n    return model.eval(), model.exec()",
]


def problems(text: str, path: str = "src/holdfast/jobs/x.py") -> list[str]:
    return [str(problem) for problem in check(parse(path, f'"""Job."""\n{text}\n'))]


@pytest.mark.parametrize("text", [*BAD, *UNSAFE])
def test_a_way_around_the_kernel_is_found(text):
    found = problems(text)
    assert found
    assert all(line.startswith("src/holdfast/jobs/x.py:") for line in found)


@pytest.mark.parametrize("text", GOOD)
def test_what_looks_like_one_passes(text):
    assert not problems(text)


@pytest.mark.parametrize("place", ["kernel", "testing"])
@pytest.mark.parametrize("text", BAD)
def test_the_kernel_and_the_test_drivers_touch_reality(text, place):
    assert not problems(text, f"src/holdfast/{place}/x.py")


@pytest.mark.parametrize("place", ["kernel", "testing", "testing/simulation", "store/sqlite"])
@pytest.mark.parametrize("text", UNSAFE)
def test_unsafe_formats_are_found_everywhere(text, place):
    assert problems(text, f"src/holdfast/{place}/x.py")


class TestSimulation:
    @pytest.mark.parametrize(
        "text", ["import time", "import threading", "import random\nx = random.random()", "import subprocess"]
    )
    def test_reality_is_found(self, text):
        assert problems(text, "src/holdfast/testing/simulation/x.py")

    def test_seeded_chance_and_virtual_seconds_pass(self):
        text = "import asyncio, random\nx = random.Random(7).random()\nasync def f():\n    await asyncio.sleep(1)"
        assert not problems(text, "src/holdfast/testing/simulation/x.py")

    def test_the_command_line_may_show_how_long_it_took(self):
        line = "src/holdfast/testing/simulation/__main__.py"
        assert not problems("import time\nx = time.monotonic()", line)
        assert problems("import time\nx = time.time()", line)


class TestCrashpoints:
    DECLARED = parse(CRASHPOINTS_FILE, 'CRASHPOINTS = {\n    "a.b": "",\n    "c.d": "",\n}')

    def problems(self, text: str) -> list[str]:
        source = parse("src/holdfast/jobs/x.py", text)
        return [str(problem) for problem in check_crashpoints([self.DECLARED, source])]

    def test_declared_ones_pass(self):
        assert not self.problems("crashpoint('a.b')\ncrashpoints.crashpoint('c.d')")

    def test_one_that_is_not_declared_is_found(self):
        assert "'a.x' is not declared" in self.problems("\ncrashpoint('a.x')")[0]

    def test_a_format_string_must_mean_some(self):
        assert not self.problems("crashpoint(f'{kind}.b')\ncrashpoint(f'c.{what}')")
        assert "'*.x' is not declared" in self.problems("crashpoint(f'{kind}.x')")[0]

    @pytest.mark.parametrize("call", ["crashpoint(name)", "crashpoint(f'{name}')", "crashpoint()"])
    def test_a_name_that_cannot_be_read_is_found(self, call):
        assert "must be a literal" in self.problems(call)[0]

    def test_one_that_stands_nowhere_is_found(self):
        found = self.problems("crashpoint('a.b')")
        assert found == [f"{CRASHPOINTS_FILE}:3: the crash point 'c.d' stands nowhere in the code"]


def test_the_code_itself_passes():
    sources = list(read("src/holdfast"))
    assert not [problem for source in sources for problem in check(source)]
    assert not list(check_crashpoints(sources))
