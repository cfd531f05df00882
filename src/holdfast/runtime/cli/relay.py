"""`holdfast relay module:hf`: publish events, without running jobs."""

from __future__ import annotations

import argparse
from typing import Any

from holdfast.kernel.processes import run_to_its_end
from holdfast.runtime.cli.logging_options import add_logging, begin_log, end_log
from holdfast.runtime.cli.worker import named_program
from holdfast.runtime.loading import load_app
from holdfast.runtime.relay_process import run_relay
from holdfast.runtime.worker_process import tell_exit


def add(commands: Any) -> None:
    about = "publish events, in a process of its own; every worker of a program with events does so too"
    relay = commands.add_parser("relay", help=about, description=f"{about[0].upper()}{about[1:]}.")
    relay.add_argument(
        "program", nargs="?", metavar="app", help="the Holdfast object, as module:name; else --app"
    )
    add_logging(relay)
    relay.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    hf = load_app(named_program(options, "relay", "whose events to publish"))
    begin_log(options)
    try:
        return run_to_its_end(run_relay(hf), tell_exit)
    finally:
        end_log()
