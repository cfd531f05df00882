"""`python -m simulators.stripe --port 8710 --webhook http://127.0.0.1:8081/webhooks/stripe`: until Ctrl-C."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

from simulators.common.server import Running
from simulators.stripe.app import Simulator
from simulators.stripe.state import API_KEY, WEBHOOK_SECRET


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m simulators.stripe", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="on loopback; 0 takes a free one")
    parser.add_argument("--seed", type=int, default=0, help="of ids and the chance of faults")
    parser.add_argument("--webhook", default="", help="where webhooks are sent")
    options = parser.parse_args()
    simulator = Simulator(options.seed)
    simulator.settings.webhook_url = options.webhook
    with Running(simulator.app, port=options.port) as server, suppress(KeyboardInterrupt):
        sys.stdout.write(
            f"Simulated Stripe: {server.url} (key {API_KEY}, webhooks signed with {WEBHOOK_SECRET})\n"
        )
        sys.stdout.flush()
        server.wait()


if __name__ == "__main__":
    main()
