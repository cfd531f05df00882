"""Presigned URLs of S3 (AWS Signature Version 4), with the headers that the request must have: libraries sign none but the host."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

import msgspec

from holdfast.kernel.clock import moment as moment_of

_ALGORITHM, _SERVICE = "AWS4-HMAC-SHA256", "s3"


class Account(msgspec.Struct, frozen=True):
    """Who signs. Printing it shows no secret."""

    access_key: str
    secret_key: str
    session_token: str | None
    region: str

    def __repr__(self) -> str:
        return f"Account({self.access_key}, ***, {self.region})"


def presign(
    account: Account,
    method: str,
    url: str,
    headers: Mapping[str, str],
    *,
    expires: int,
    moment: float,
    query: Mapping[str, str] | None = None,
) -> str:
    """The URL that may be asked for from `moment` on, for `expires` seconds, with exactly these headers."""
    parts = urlsplit(url)
    stamp = f"{moment_of(moment):%Y%m%dT%H%M%SZ}"
    scope = f"{stamp[:8]}/{account.region}/{_SERVICE}/aws4_request"
    signed = {"host": parts.netloc, **{name.lower(): value for name, value in headers.items()}}
    names = ";".join(sorted(signed))
    fields = {
        **(query or {}),
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{account.access_key}/{scope}",
        "X-Amz-Date": stamp,
        "X-Amz-Expires": str(expires),
        "X-Amz-SignedHeaders": names,
    }
    if account.session_token is not None:
        fields["X-Amz-Security-Token"] = account.session_token
    asked = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in sorted(fields.items()))
    lines = "".join(f"{name}:{signed[name].strip()}\n" for name in sorted(signed))
    request = "\n".join(
        (method, quote(parts.path or "/", safe="/-_.~"), asked, lines, names, "UNSIGNED-PAYLOAD")
    )
    text = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    return f"{parts.scheme}://{parts.netloc}{quote(parts.path or '/', safe='/-_.~')}?{asked}&X-Amz-Signature={_mark(account, scope, text)}"


def _mark(account: Account, scope: str, text: str) -> str:
    key = b"AWS4" + account.secret_key.encode()
    for step in scope.split("/"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")
