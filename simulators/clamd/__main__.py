"""`python -m simulators.clamd --port 8730 --page 8731`: a scanner that knows the test file alone, until Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

from simulators.clamd.app import Simulator
from simulators.common.server import Running


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simulators.clamd", description=__doc__)
    parser.add_argument(
        "--port", type=int, default=0, help="of clamd's protocol, on loopback; 0 takes a free one"
    )
    parser.add_argument("--page", type=int, default=0, help="of what drives it")
    parser.add_argument("--seed", type=int, default=0, help="of the chance of faults")
    options = parser.parse_args()
    simulator = Simulator(options.seed, port=options.port)
    with simulator, Running(simulator.app, port=options.page) as page, suppress(KeyboardInterrupt):
        sys.stdout.write(f"Simulated clamd: {simulator.address}, driven at {page.url}\n")
        sys.stdout.flush()
        page.wait()


if __name__ == "__main__":
    main()
