"""`holdfast worker module:hf`: run jobs, in this process or in several under a supervisor."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from holdfast.jobs.deaths import Deaths
from holdfast.jobs.service import GRACE, LEASE, check_tables
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int
from holdfast.kernel.processes import die_with_parent, run_to_its_end
from holdfast.observe.metrics.ledger import FOLDER
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.environment import Given
from holdfast.runtime.cli.logging_options import add_logging, begin_log, end_log, logging_arguments
from holdfast.runtime.cli.parser import count, seconds
from holdfast.runtime.inside import inside
from holdfast.runtime.loading import load_app
from holdfast.runtime.port import COUNTS, folder_for_all, served, work_in
from holdfast.runtime.supervisor import SUPERVISOR, Supervisor
from holdfast.runtime.worker_process import WorkerOptions, run_worker, tell_exit

SLOTS = 50


def add(commands: Any) -> None:
    worker = commands.add_parser("worker", help="run jobs")
    worker.add_argument(
        "program", nargs="?", metavar="app", help="the Holdfast object, as module:name; else --app"
    )
    worker.add_argument(
        "-q",
        "--queues",
        default="default",
        help="queues and their slots: mail:10,default:4",
    )
    worker.add_argument(
        "-c", "--concurrency", type=int, default=SLOTS,
        help=f"slots of a queue that names none ({SLOTS})",
    )  # fmt: skip
    worker.add_argument(
        "-p", "--processes", type=int, default=None,
        help="this many processes under a supervisor, which replaces those that die; without it, this one process",
    )  # fmt: skip
    worker.add_argument("--burst", action="store_true", help="leave when there is nothing to do")
    worker.add_argument(
        "--max-tasks-per-child", type=count, default=None,
        help="a process leaves after so many runs; a supervisor starts the next",
    )  # fmt: skip
    worker.add_argument(
        "--shutdown-timeout", type=float, default=GRACE,
        help=f"seconds that running jobs have to end ({GRACE:g})",
    )  # fmt: skip
    worker.add_argument(
        "--lease", type=float, default=LEASE,
        help=f"seconds for which a claim outlives its worker's last sign of life ({LEASE:g})",
    )  # fmt: skip
    worker.add_argument(
        "--probe", metavar="HOST:PORT", default=None,
        help="serve probes and metrics here, for all processes, such as 127.0.0.1:8000",
    )  # fmt: skip
    worker.add_argument(
        "--watchdog", type=seconds, default=None,
        help="a process whose event loop stands still for so many seconds ends itself",
    )  # fmt: skip
    add_logging(worker)
    worker.add_argument("--name", default=None, help=argparse.SUPPRESS)
    worker.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    # Before the program is imported, which may take long; and taken out, so that what we start is not ruled by it.
    if (supervisor := os.environ.pop(SUPERVISOR, None)) is not None:
        die_with_parent(int(supervisor))
    chosen = WorkerOptions(
        queues=parse_queues(options.queues, options.concurrency),
        name=options.name,
        lease=options.lease,
        grace=options.shutdown_timeout,
        burst=options.burst,
        max_tasks=options.max_tasks_per_child,
        supervised=supervisor is not None,
        probe=None if supervisor is not None else options.probe,
        counts=supervisor is not None and COUNTS in os.environ,
        watchdog=options.watchdog,
    )
    options.app = named_program(options, "worker", "whose jobs to run")
    hf = load_app(options.app)
    begin_log(options)
    is_child = supervisor is not None  # it inherits the number, and must not start as many again
    alone = is_child or options.processes is None
    try:
        return run_to_its_end(run_worker(hf, chosen) if alone else _supervise(hf, options, chosen), tell_exit)
    finally:
        end_log()


def named_program(options: argparse.Namespace, command: str, what: str) -> str:
    """The command line wins over the environment. A worker runs a program's code, on the database of that program."""
    given = None if isinstance(options.app, Given) else options.app
    if given is not None and options.program not in (None, given):
        raise UsageError(f"Name one program: {options.program}, or --app {given}.")
    if options.url is not None and not isinstance(options.url, Given):
        raise UsageError(
            f"A {command} takes no --url: it runs a program's code, on the database that is named there."
        )
    if (name := options.program or options.app) is None:
        raise UsageError(f"Say {what}: holdfast {command} shop.tasks:hf, or --app shop.tasks:hf.")
    return str(name)


async def _supervise(hf: Holdfast, options: argparse.Namespace, chosen: WorkerOptions) -> int:
    processes = check_int("processes", options.processes, 1, 1_000)
    async with AsyncExitStack() as stack:
        environment = await stack.enter_async_context(_seen(hf, options.probe, processes))
        await stack.enter_async_context(hf)
        await check_tables(hf.store)  # or children would be started for ever
        deaths = Deaths(hf.store, inside(hf).registry, inside(hf).portal)
        supervisor = Supervisor(
            lambda name: _child(options, name),
            deaths.rescue_worker,
            count=processes,
            grace=chosen.grace,
            burst=chosen.burst,
            environment=environment,
        )
        return await supervisor.run()


@asynccontextmanager
async def _seen(hf: Holdfast, where: str | None, processes: int) -> AsyncGenerator[dict[str, str], None]:
    """Probes and metrics of all processes, and what these have to be told for it."""
    if where is None:
        yield {}
        return
    with folder_for_all() as folder:
        inside(hf).work_elsewhere = partial(work_in, folder, processes)
        try:
            async with served(hf, where):
                yield {FOLDER: str(folder), COUNTS: "1"}
        finally:
            inside(hf).work_elsewhere = None


def _child(options: argparse.Namespace, name: str) -> list[str]:
    command = [sys.executable, "-m", "holdfast", "worker", options.app, "--name", name]
    command += ["--queues", options.queues, "--concurrency", str(options.concurrency)]
    command += ["--shutdown-timeout", str(options.shutdown_timeout), "--lease", str(options.lease)]
    command += logging_arguments(options)
    if options.watchdog is not None:
        command += ["--watchdog", str(options.watchdog)]
    if options.burst:
        command.append("--burst")
    if options.max_tasks_per_child is not None:
        command += ["--max-tasks-per-child", str(options.max_tasks_per_child)]
    return command


def parse_queues(text: str, slots: int) -> dict[str, int]:
    """`mail:10,default` as slots for each queue."""
    queues: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = part.strip().partition(":")
        if not name or (number and not number.isdecimal()) or name in queues:
            raise UsageError(f"Queues are written mail:10,default:4, each once; {part!r} in {text!r} is not.")
        queues[name] = int(number) if number else slots
    return queues
