"""How often: for each address, for each account that a login names, and for each person."""

from __future__ import annotations

from admissions.web.receiving import FORM_MOST
from holdfast.web import RateLimit

ACCOUNT = "account"  # counted by handlers: `await count_request(request, ACCOUNT, folded(mail))` before a password is looked at
LARGER = dict.fromkeys(
    ["POST /applications", "POST /api/applications/{id}/documents", "POST /applications/{id}/files"],
    FORM_MOST + 100_000,
)
TOTAL = 200_000  # bytes of any other body
_ENTERING = [
    f"POST {base}/{verb}"
    for base in ("", "/api")
    for verb in ("login", "register", "forgot", "confirm", "reset")
]
_SECRETS = [f"POST {base}/account/{verb}" for base in ("", "/api") for verb in ("mail", "password", "delete")]
_SUBMISSIONS = [
    "POST /applications", "POST /api/applications/{id}/submit", "POST /api/applications/{id}/payment",
    "POST /applications/{id}/check", "POST /applications/{id}/pay",
]  # fmt: skip
_FILES = ["POST /api/applications/{id}/documents", "POST /applications/{id}/files"]


def for_addresses(*, limited: bool) -> list[RateLimit]:
    """A school or a hall of residence is one address: what is done once in a lifetime is what is limited here."""
    account = RateLimit(ACCOUNT, requests=10, seconds=900, by="handler")
    if not limited:
        return [account]
    return [
        RateLimit("all", requests=3_000, seconds=60),
        RateLimit("entering", requests=100, seconds=300, routes=_ENTERING),
        account,
    ]


def for_people(*, limited: bool) -> list[RateLimit]:
    """`secrets` guess a password, or have mails sent to strangers."""
    if not limited:
        return []
    return [
        RateLimit("secrets", requests=10, seconds=900, by="principal", routes=_SECRETS),
        RateLimit("submissions", requests=200, seconds=300, by="principal", routes=_SUBMISSIONS),
        RateLimit("files", requests=60, seconds=300, by="principal", routes=_FILES),
    ]
