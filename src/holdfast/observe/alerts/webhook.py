"""Post an alert to a webhook: signed, with an end to its patience, and to wherever the settings say and nowhere else."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

import msgspec

from holdfast.guards.headers import parse_retry_after
from holdfast.jobs.control import Retry
from holdfast.kernel.clock import now
from holdfast.kernel.errors import HoldfastError
from holdfast.observe.alerts.alert import Alert
from holdfast.observe.alerts.settings import AlertSettings, place_of
from holdfast.observe.alerts.signing import ID, SIGNATURE, TIMESTAMP, signed

_READ = 64 * 1024  # bytes of an answer; the rest is not read
_OK = range(200, 300)
_LATER = (429, 503)


class AlertNotTaken(HoldfastError):
    """The webhook did not take an alert. It is tried again."""


def post(settings: AlertSettings, alert: Alert, delivery: str) -> int:
    """The status that it answered with, from 200 to 299. Anything else is AlertNotTaken, a redirect too."""
    url, secret = settings.webhook or "", settings.secret or ""
    body, timestamp = msgspec.json.encode(alert), int(now())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "holdfast",
        ID: delivery,
        TIMESTAMP: str(timestamp),
        SIGNATURE: signed(secret, delivery, timestamp, body),
    }
    connection = _connection(url, settings.timeout)
    try:
        connection.request("POST", _target(url), body, headers)
        answer = connection.getresponse()
        answer.read(_READ)
    except (OSError, HTTPException) as error:
        raise AlertNotTaken(f"{place_of(url)} did not answer: {error!r}") from None
    finally:
        connection.close()
    return _judged(answer, url)


def _judged(answer: HTTPResponse, url: str) -> int:
    if answer.status in _OK:
        return answer.status
    refusal = f"{place_of(url)} answered {answer.status}"
    if answer.status in _LATER and (rest := parse_retry_after(answer.headers.get("Retry-After"))) is not None:
        raise Retry(after=rest, error=refusal)
    raise AlertNotTaken(refusal)


def _connection(url: str, timeout: float) -> HTTPConnection:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=timeout)


def _target(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
