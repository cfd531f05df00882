"""`make publisher`, `make admissions`: a system with its simulators and seeded data on loopback, until Ctrl-C. Each start begins anew."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PATIENCE = 60.0  # seconds for a simulator to answer, and for everything to end


@dataclass(frozen=True)
class Started:
    """`simulators` are modules with their arguments, where `{name}` is one of `ports`; `told` is the environment."""

    name: str
    ports: dict[str, int]  # the usual ones; when another has one, a free one is taken
    simulators: tuple[str, ...]
    told: dict[str, str]
    says: tuple[str, ...]


SYSTEMS = {
    "publisher": Started(
        name="publisher",
        ports={"pages": 8080, "health": 8000, "deviantart": 8700},
        simulators=("simulators.deviantart --port {deviantart}",),
        told={
            "DATABASE_URL": "sqlite:///publisher.db",
            "DEVIANTART_BASE_URL": "http://127.0.0.1:{deviantart}",
            "PUBLISHER_PUBLIC_URL": "http://127.0.0.1:{pages}",
            "PUBLISHER_PORT": "{pages}",
            "HEALTH_CHECK_PORT": "{health}",
        },
        says=(
            "Pages:                 http://127.0.0.1:{pages}  (log in, and choose ada-arc: she has a year of history; bo-linnet is new)",
            "Simulated DeviantArt:  http://127.0.0.1:{deviantart}  (what was published; its faults are switched below /_sim)",
            "Probes and metrics:    http://127.0.0.1:{health}/health, /ready, /metrics",
            "Mails:                 {folder}/publisher-mail",
        ),
    ),
    "admissions": Started(
        name="admissions",
        ports={"pages": 8081, "health": 8001, "stripe": 8710, "smtp": 8725, "mails": 8726},
        simulators=(
            "simulators.stripe --port {stripe} --webhook http://127.0.0.1:{pages}/webhooks/stripe",
            "simulators.smtp --port {smtp} --page {mails}",
        ),
        told={
            "DATABASE_URL": "sqlite:///admissions.db",
            "STRIPE_BASE_URL": "http://127.0.0.1:{stripe}",
            "SMTP_URL": "smtp://127.0.0.1:{smtp}",
            "ADMISSIONS_PUBLIC_URL": "http://127.0.0.1:{pages}",
            "ADMISSIONS_PORT": "{pages}",
            "HEALTH_CHECK_PORT": "{health}",
        },
        says=(
            "Pages:               http://127.0.0.1:{pages}  (applicant anh@example.org; officers ada@ and binh@uni.example, finance clara@, administrator dung@; password of all: correct horse battery)",
            "Mails:               http://127.0.0.1:{mails}",
            "Simulated Stripe:    http://127.0.0.1:{stripe}  (pay with card 4242 4242 4242 4242, any later month, any code)",
            "Probes and metrics:  http://127.0.0.1:{health}/health, /ready, /metrics",
        ),
    ),
}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in SYSTEMS:
        print(f"usage: python -m tools.start {'|'.join(SYSTEMS)}", file=sys.stderr)
        return 2
    system = SYSTEMS[arguments[0]]
    ports = {name: _port(usual) for name, usual in system.ports.items()}
    with tempfile.TemporaryDirectory(prefix=f"{system.name}-") as folder:
        return _run(
            system, {**{name: str(port) for name, port in ports.items()}, "folder": folder}, Path(folder)
        )


def _run(system: Started, values: dict[str, str], folder: Path) -> int:
    environment = _environment(system, values)
    with _ended() as start:
        for each in system.simulators:
            start([sys.executable, "-m", *each.format_map(values).split()], environment, ROOT)
        for name in values.keys() & {"deviantart", "stripe", "mails"}:
            _wait_for(int(values[name]))
        this = [sys.executable, "-m", f"{system.name}.main"]
        for verb, says in (("migrate", "tables"), ("seed", "data worth looking at, a moment")):
            print(f"{system.name}: {says} …", flush=True)
            done = subprocess.run(
                [*this, verb], env=environment, cwd=folder, stdout=subprocess.DEVNULL, check=False
            )
            if done.returncode:
                return done.returncode
        running = start([*this, "all"], environment, folder)
        _wait_for(int(values["pages"]))
        print(
            "\n" + "\n".join(line.format_map(values) for line in system.says) + "\nCtrl-C ends everything.",
            flush=True,
        )
        with _quiet_interrupt():
            return running.wait()
    return 0


def _environment(system: Started, values: dict[str, str]) -> dict[str, str]:
    paths = os.pathsep.join((str(ROOT), str(ROOT / "systems" / system.name)))
    told = {name: value.format_map(values) for name, value in system.told.items()}
    return {**os.environ, **told, "PYTHONPATH": paths}


@contextmanager
def _ended() -> Iterator[Callable[[list[str], dict[str, str], Path], subprocess.Popen[bytes]]]:
    """What was started in the block is asked to leave, the last one first, and ended when it does not."""
    started: list[subprocess.Popen[bytes]] = []

    def start(command: list[str], environment: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
        started.append(
            subprocess.Popen(
                command, env=environment, cwd=folder, start_new_session=True
            )  # Ctrl-C comes to us alone
        )
        return started[-1]

    try:
        yield start
    finally:
        for each in reversed(started):
            if each.poll() is None:
                each.terminate()
                try:
                    each.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    each.kill()
                    each.wait()


@contextmanager
def _quiet_interrupt() -> Iterator[None]:
    """Ctrl-C and SIGTERM end it in order."""

    def leave(*_: object) -> None:
        raise SystemExit(0)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    yield


def _port(usual: int) -> int:
    """This one, or a free one when it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", usual))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"Nothing answers on port {port} after {_PATIENCE:g} s.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
