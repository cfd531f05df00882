"""What `holdfast doctor` says of the settings of probes, metrics and traces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryFile

from holdfast.kernel.errors import UsageError
from holdfast.kernel.tracing import is_traced, tracer
from holdfast.observe.metrics.ledger import FOLDER
from holdfast.runtime.port import has_metrics
from holdfast.store.findings import Finding, bad, ok, warn
from holdfast.web.serving import address

_PROBE = "HOLDFAST_WORKER_PROBE"
_CHECK = "probes and metrics"


def examine() -> list[Finding]:
    """Nothing is said of what is not set."""
    return [*_probe(os.environ.get(_PROBE) or ""), *_folder(os.environ.get(FOLDER) or ""), *_traces()]


def _probe(given: str) -> Iterator[Finding]:
    if not given:
        return
    try:
        host, _ = address(given)
    except UsageError as error:
        yield warn(_CHECK, f"{_PROBE}: {error}", "Write an address, or workers do not start.")
        return
    if not _is_loopback(host):
        yield warn(
            _CHECK,
            f"Workers answer at {given} whoever asks: probes and metrics know no passwords.",
            "Use 127.0.0.1, or keep that network to what needs it.",
        )
    elif has_metrics():
        yield ok(_CHECK, f"Workers serve them at {given}.")
    else:
        yield warn(
            _CHECK, f"Workers serve probes at {given}, and no metrics.", "pip install 'holdfast[metrics]'."
        )


def _folder(given: str) -> Iterator[Finding]:
    if not given:
        return
    folder = Path(given)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        yield bad(
            _CHECK,
            f"{FOLDER} is {given}, and nothing can be written there: {error.strerror or error}.",
            "Make it writable for this user: who counts does not start.",
        )
        return
    if folder.stat().st_mode & 0o002:
        yield warn(
            _CHECK,
            f"{FOLDER} is {given}, and everyone may write there.",
            "Use a folder of its own: chmod 700.",
        )
    else:
        yield ok(_CHECK, f"Processes share their numbers in {given}.")


def _traces() -> Iterator[Finding]:
    if not is_traced():
        return
    if tracer() is None:
        yield warn(
            "traces",
            "Spans are asked for, and nobody takes them: the program sets up no SDK of OpenTelemetry.",
            "Give it a TracerProvider, or start it by opentelemetry-instrument. See docs/traces.md.",
        )
    else:
        yield ok("traces", "Spans are made.")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
