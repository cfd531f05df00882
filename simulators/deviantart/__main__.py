"""`python -m simulators.deviantart --port 8700`: the simulated DeviantArt until Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

from simulators.common.server import Running
from simulators.deviantart.app import Simulator
from simulators.deviantart.state import CLIENT_ID, CLIENT_SECRET


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simulators.deviantart", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="on loopback; 0 takes a free one")
    parser.add_argument("--seed", type=int, default=0, help="of artists, ids and the chance of faults")
    options = parser.parse_args()
    with Running(Simulator(options.seed).app, port=options.port) as server, suppress(KeyboardInterrupt):
        sys.stdout.write(f"Simulated DeviantArt: {server.url} (client {CLIENT_ID}, secret {CLIENT_SECRET})\n")
        sys.stdout.flush()
        server.wait()


if __name__ == "__main__":
    main()
