"""`publisher …` as processes of their own, on a database of this test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from publisher.core import settings
from visitors import picture

from holdfast.vault import new_key

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds; the machine may be busy
PEOPLE = []  # whose connections a test closes


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class World:
    """The settings that all processes of a test share."""

    def __init__(self, folder, url, **more):
        self.folder, self.url = folder, url
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PUBLISHER_")},
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT.parents[1])]),
            "DATABASE_URL": url,
            "DEVIANTART_BASE_URL": settings.deviantart_url,
            "PUBLISHER_FILES": str(folder / "files"),
            "PUBLISHER_KEYS": new_key("test"),
            "SMTP_URL": f"file:{folder / 'mail'}",
            **more,
        }
        made = self.run("migrate")
        assert made.returncode == 0, made.stderr

    def start(self, *command, **more):
        return Process(self, command, more)

    def run(self, *command, **more):
        """To its end."""
        return subprocess.run(
            [sys.executable, "-m", "publisher.main", *command],
            cwd=self.folder, env={**self.environment, **more}, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip


class Process:
    def __init__(self, world, command, more):
        self.port, self.probe = free_port(), free_port()
        self.url, self.probe_url = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.probe}"
        self.log = world.folder / f"{command[0]}-{self.port}.log"
        told = {"PUBLISHER_PORT": str(self.port), "HEALTH_CHECK_PORT": str(self.probe), **more}
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "publisher.main", *command],
                cwd=world.folder, env={**world.environment, **told}, stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE)

    @property
    def pid(self):
        return self._process.pid

    def until(self, address, status=200):
        """It answers so."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self._process.poll() is None, self.log.read_text()
            try:
                answer = httpx.get(address, timeout=5)
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            if answer.status_code == status:
                return answer
            time.sleep(0.05)
        raise AssertionError(f"{address} does not answer with {status}: {self.log.read_text()}")

    def ready(self):
        self.until(f"{self.url}/probes/ready")
        return self

    def signal(self, number=signal.SIGTERM):
        self._process.send_signal(number)

    def ended(self):
        return self._process.wait(PATIENCE)

    def kill(self):
        self._process.kill()
        self._process.wait(PATIENCE)


class Person:
    """Somebody whose requests go to one process after the other, as through a proxy."""

    def __init__(self, *urls):
        self._urls, self._turn = list(urls), 0
        self.http = httpx.Client(timeout=30)
        PEOPLE.append(self)

    def ask(self, method, path, **more):
        self._turn += 1
        url = self._urls[self._turn % len(self._urls)]
        return self.http.request(method, f"{url}{path}", **more)

    def log_in(self, name="ada-arc"):
        self.token()
        asked = self.ask("POST", "/login")
        assert asked.status_code == 303, asked.text
        address = asked.headers["location"]
        back = urlsplit(httpx.post(address, data={"artist": name}).headers["location"])
        answer = self.ask("GET", f"{back.path}?{back.query}")
        assert answer.headers["location"] == "/", answer.text
        self.token()
        return self

    def token(self):
        answer = self.ask("GET", "/api/account/session")
        self.http.headers["x-csrf-token"] = answer.json()["csrf"]

    def upload(self, name="a.png", **headers):
        files = {"files": (name, picture(name), "image/png")}
        return self.ask("POST", "/api/uploads", files=files, headers=headers)
