"""`python -m simulators.smtp --port 8725 --page 8726`: a mail server that keeps what it takes, until Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

from simulators.common.server import Running
from simulators.smtp.app import Simulator


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simulators.smtp", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of SMTP, on loopback; 0 takes a free one")
    parser.add_argument("--page", type=int, default=0, help="of the page that shows the mails")
    parser.add_argument("--seed", type=int, default=0, help="of the chance of faults")
    options = parser.parse_args()
    simulator = Simulator(options.seed, port=options.port)
    with simulator, Running(simulator.app, port=options.page) as page, suppress(KeyboardInterrupt):
        sys.stdout.write(f"Simulated mail server: {simulator.url}, mails at {page.url}\n")
        sys.stdout.flush()
        page.wait()


if __name__ == "__main__":
    main()
